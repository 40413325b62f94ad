# `cmake --install`: the library with its headers for find_package(minillm), the program, the configs, the documents.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(MINILLM_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/minillm)

install(TARGETS minillm EXPORT minillmTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET minillm_cli)
  install(TARGETS minillm_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

# Headers keep their floors, because they include each other as "core/tensor.h". Those that scripts/check_floors calls
# private stay behind.
foreach(floor IN LISTS MINILLM_FLOORS)
  if(IS_DIRECTORY ${PROJECT_SOURCE_DIR}/${floor})
    install(DIRECTORY ${floor} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/minillm
            FILES_MATCHING PATTERN "*.h"
            PATTERN op_support.h EXCLUDE PATTERN targets.h EXCLUDE PATTERN ops EXCLUDE PATTERN h5_support.h EXCLUDE PATTERN h5_sink.h EXCLUDE)
  endif()
endforeach()

install(EXPORT minillmTargets NAMESPACE minillm:: DESTINATION ${MINILLM_CMAKE_DIR})
configure_package_config_file(cmake/minillmConfig.cmake.in ${PROJECT_BINARY_DIR}/minillmConfig.cmake
                              INSTALL_DESTINATION ${MINILLM_CMAKE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/minillmConfigVersion.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/minillmConfig.cmake ${PROJECT_BINARY_DIR}/minillmConfigVersion.cmake
              cmake/FindSentencePiece.cmake
        DESTINATION ${MINILLM_CMAKE_DIR})

install(DIRECTORY configs DESTINATION ${CMAKE_INSTALL_DATADIR}/minillm)
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.md")
install(FILES README.md CHANGELOG.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
