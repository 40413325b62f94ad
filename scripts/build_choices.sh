# For scripts that build from nothing: `source` it and give CMake "${build_choices[@]}". They make a build shorter and
# leave what it makes alone.
build_choices=(-DCMAKE_UNITY_BUILD=ON)
if command -v ccache >/dev/null; then
  build_choices+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
fi
