# Installs to a fresh prefix, compiles every installed header and examples/ against it, runs the example and looks at
# what it prints. cmake -DBUILD_DIR=... -DSOURCE_DIR=... -DWORK_DIR=... -DCXX=... -DCC=... -DPROGRAM=yes|no -P this file
cmake_minimum_required(VERSION 3.25)

# run(<what> <output variable> <command>...) stops the test with the command's output when it fails.
function(run what output)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE out ERROR_VARIABLE err)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${what} failed (${status}):\n${out}\n${err}")
  endif()
  set(${output} "${out}" PARENT_SCOPE)
endfunction()

set(prefix ${WORK_DIR}/prefix)
file(REMOVE_RECURSE ${WORK_DIR})
run("install" ignored ${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${prefix})
foreach(document IN ITEMS README.md LICENSE CHANGELOG.md)
  if(NOT EXISTS ${prefix}/share/doc/minillm/${document})
    message(FATAL_ERROR "${document} was not installed")
  endif()
endforeach()
if(PROGRAM)
  run("the installed program" ignored ${prefix}/bin/minillm --help)
  run("a preset of the installed program" ignored ${prefix}/bin/minillm ledger gpt2)
endif()

file(STRINGS ${SOURCE_DIR}/cmake/private_headers.txt private_headers REGEX "^[^#]")
foreach(line IN LISTS private_headers)
  string(REGEX MATCH "^[^ ]+" header "${line}")
  if(NOT EXISTS ${SOURCE_DIR}/${header} OR EXISTS ${prefix}/include/minillm/${header})
    message(FATAL_ERROR "${header} is private: it is in the tree and must not be installed")
  endif()
endforeach()

# What is installed must not need a header that is not.
file(GLOB_RECURSE headers RELATIVE ${prefix}/include/minillm ${prefix}/include/minillm/*.h)
list(LENGTH headers count)
if(count LESS 20)
  message(FATAL_ERROR "only ${count} headers were installed")
endif()
list(TRANSFORM headers REPLACE "(.+)" "#include \"\\1\"")
list(JOIN headers "\n" includes)
file(WRITE ${WORK_DIR}/headers/all.cpp "${includes}\n")
file(WRITE ${WORK_DIR}/headers/CMakeLists.txt "cmake_minimum_required(VERSION 3.25)\n"
  "project(all_headers LANGUAGES CXX)\nfind_package(minillm REQUIRED)\n"
  "add_library(all_headers OBJECT all.cpp)\ntarget_link_libraries(all_headers PRIVATE minillm::minillm)\n")

foreach(project IN ITEMS ${WORK_DIR}/headers ${SOURCE_DIR}/examples)
  get_filename_component(name ${project} NAME)
  set(build ${WORK_DIR}/build-${name})
  run("configuring ${name}" ignored ${CMAKE_COMMAND} -S ${project} -B ${build} -G Ninja -DCMAKE_PREFIX_PATH=${prefix}
      -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_C_COMPILER=${CC} -DCMAKE_FIND_PACKAGE_NO_PACKAGE_REGISTRY=ON)
  run("building ${name}" ignored ${CMAKE_COMMAND} --build ${build})
endforeach()

run("the example" out ${WORK_DIR}/build-examples/first_steps)
message(STATUS "${out}")
string(REGEX MATCHALL "loss [0-9.]+" losses "${out}")
list(LENGTH losses count)
if(NOT count EQUAL 5)
  message(FATAL_ERROR "expected 5 losses, found ${count}")
endif()
list(GET losses 0 first)
list(GET losses 4 last)
string(REPLACE "loss " "" first ${first})
string(REPLACE "loss " "" last ${last})
# 0.25 is what a constant reaches on exclusive or, so a net that learned is far below it.
if(NOT first GREATER 0.2 OR NOT last LESS 0.001)
  message(FATAL_ERROR "the loss did not fall as it should: from ${first} to ${last}")
endif()
