# Version and git commit for core/build_info.cpp alone: a new commit recompiles one file, at the next configure.
set(MINILLM_COMMIT "")
if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/.git)
  find_program(MINILLM_GIT git)
  mark_as_advanced(MINILLM_GIT)
  if(MINILLM_GIT)
    execute_process(COMMAND ${MINILLM_GIT} describe --always --abbrev=12 --exclude=* --dirty=+
                    WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} OUTPUT_VARIABLE MINILLM_COMMIT
                    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
endif()
string(TOUPPER "${CMAKE_BUILD_TYPE}" MINILLM_BUILD_TYPE)
string(CONCAT MINILLM_FLAGS "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${MINILLM_BUILD_TYPE}} native=${MINILLM_NATIVE} "
                            "simd=${MINILLM_SIMD} openmp=${MINILLM_OPENMP} sanitize=${MINILLM_SANITIZE}")
set_source_files_properties(core/build_info.cpp PROPERTIES COMPILE_DEFINITIONS
  "MINILLM_VERSION=\"${PROJECT_VERSION}\";MINILLM_COMMIT=\"${MINILLM_COMMIT}\";MINILLM_FLAGS=\"${MINILLM_FLAGS}\"")
