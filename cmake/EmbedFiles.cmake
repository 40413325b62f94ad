# The files of pages that the program writes become part of the library: a C++ source that defines suite/embedded.h's
# function.
file(GLOB embedded_files CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/suite/*.html
     ${CMAKE_CURRENT_SOURCE_DIR}/suite/*.css ${CMAKE_CURRENT_SOURCE_DIR}/suite/*.js)
set(embedded_rows "")
foreach(file IN LISTS embedded_files)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(READ ${file} text)
  get_filename_component(name ${file} NAME)
  string(APPEND embedded_rows "    {\"${name}\", R\"minillm(${text})minillm\"},\n")
endforeach()
set(embedded_source ${PROJECT_BINARY_DIR}/embedded_files.cpp)
file(CONFIGURE OUTPUT ${embedded_source} @ONLY CONTENT "#include \"suite/embedded.h\"

namespace minillm {

namespace {

constexpr EmbeddedFile files[] = {
${embedded_rows}};

}  // namespace

std::span<const EmbeddedFile> embedded_files() {
  return files;
}

}  // namespace minillm
")
list(APPEND minillm_sources ${embedded_source})
