# Every library the project uses. All come from Debian's packages; nothing is downloaded here.
set(MINILLM_PACKAGES "libfmt-dev libhdf5-dev libcxxopts-dev doctest-dev libtomlplusplus-dev nlohmann-json3-dev \
libsentencepiece-dev libpcre2-dev libssl-dev libdnnl-dev ocl-icd-opencl-dev")
set(missing "")

# minillm_find(<package> [find_package arguments...]) remembers what is missing, so that all of it is named at once.
macro(minillm_find package)
  find_package(${package} QUIET ${ARGN})
  if(NOT ${package}_FOUND)
    list(APPEND missing ${package})
  endif()
endmacro()

if(MINILLM_OPENMP)
  find_package(OpenMP COMPONENTS CXX QUIET)
  if(NOT OpenMP_CXX_FOUND)
    set(MINILLM_OPENMP OFF)
    message(WARNING "OpenMP was not found: minillm will run on a single thread, without oneDNN")
  endif()
endif()
if(NOT MINILLM_OPENMP)
  # libdnnl brings an OpenMP runtime of its own: it would start threads that we cannot count, and sums would be split by
  # their number.
  set(MINILLM_ONEDNN OFF)
endif()

minillm_find(fmt)
minillm_find(HDF5 COMPONENTS C)
minillm_find(nlohmann_json)
minillm_find(SentencePiece)
minillm_find(PCRE2)
minillm_find(OpenSSL COMPONENTS Crypto)
minillm_find(cxxopts)
minillm_find(tomlplusplus)
if(MINILLM_BUILD_TESTS)
  minillm_find(doctest)
endif()
if(MINILLM_ONEDNN)
  minillm_find(dnnl CONFIG)
endif()
if(missing)
  list(JOIN missing ", " missing)
  message(FATAL_ERROR "missing libraries: ${missing}\nInstall them with scripts/setup.sh, or:\n"
                      "  apt-get install ${MINILLM_PACKAGES}")
endif()

# toml++ is used header-only by train/config_file.cpp; linking its target would switch that off.
# nlohmann-json is headers only: who links the installed library does not need it.
set(MINILLM_PRIVATE_LIBRARIES $<BUILD_INTERFACE:nlohmann_json::nlohmann_json> hdf5::hdf5 SentencePiece::Train
    PCRE2::8BIT OpenSSL::Crypto)
if(MINILLM_ONEDNN)
  list(APPEND MINILLM_PRIVATE_LIBRARIES DNNL::dnnl)
  add_compile_definitions(MINILLM_ONEDNN)
endif()
