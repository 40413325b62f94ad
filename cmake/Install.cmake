# `cmake --install`: the library with its headers for find_package(minillm), the program, the configs, the documents.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(MINILLM_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/minillm)

install(TARGETS minillm EXPORT minillmTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET minillm_cli)
  install(TARGETS minillm_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

# Headers keep their floors, because they include each other as "core/tensor.h". The private ones stay behind.
file(STRINGS cmake/private_headers.txt private_headers REGEX "^[^#]")
list(TRANSFORM private_headers REPLACE " .*" "")
foreach(floor IN LISTS MINILLM_FLOORS)
  file(GLOB_RECURSE headers RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${floor}/*.h)
  list(REMOVE_ITEM headers ${private_headers})
  foreach(header IN LISTS headers)
    get_filename_component(folder ${header} DIRECTORY)
    install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/minillm/${folder})
  endforeach()
endforeach()

install(EXPORT minillmTargets NAMESPACE minillm:: DESTINATION ${MINILLM_CMAKE_DIR})
configure_package_config_file(cmake/minillmConfig.cmake.in ${PROJECT_BINARY_DIR}/minillmConfig.cmake
                              INSTALL_DESTINATION ${MINILLM_CMAKE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/minillmConfigVersion.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/minillmConfig.cmake ${PROJECT_BINARY_DIR}/minillmConfigVersion.cmake
              cmake/FindSentencePiece.cmake cmake/FindPCRE2.cmake
        DESTINATION ${MINILLM_CMAKE_DIR})

install(DIRECTORY configs DESTINATION ${CMAKE_INSTALL_DATADIR}/minillm)
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.md")
install(FILES README.md CHANGELOG.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
