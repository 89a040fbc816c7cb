# What every target is compiled with.
include(GNUInstallDirs)
# A newer compiler than the project's may warn of something new, which must not stop a user's build.
set(ONEBIT_WARNINGS_ARE_ERRORS OFF CACHE STRING
  "A warning ends the build: OFF, ON, or KNOWN if the compiler is no newer than g++ 12 or clang 14")
set(ONEBIT_KNOWN_GNU 12)
set(ONEBIT_KNOWN_Clang 14)
set(ONEBIT_WARNINGS_END "${ONEBIT_WARNINGS_ARE_ERRORS}")
if(ONEBIT_WARNINGS_END STREQUAL "KNOWN")
  set(ONEBIT_WARNINGS_END OFF)
  string(REGEX MATCH "^[0-9]+" major "${CMAKE_CXX_COMPILER_VERSION}")
  if(major LESS_EQUAL "${ONEBIT_KNOWN_${CMAKE_CXX_COMPILER_ID}}")
    set(ONEBIT_WARNINGS_END ON)
  endif()
endif()

add_library(onebit_flags INTERFACE)
target_include_directories(onebit_flags INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(onebit_flags INTERFACE cxx_std_20)

add_library(onebit_warnings INTERFACE)
target_compile_options(onebit_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra $<$<BOOL:${ONEBIT_WARNINGS_END}>:-Werror> -Wshadow -Wnon-virtual-dtor -Wold-style-cast
    -Woverloaded-virtual -Wno-psabi -Wno-missing-field-initializers>
  $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wno-missing-braces>
  # GCC 12 sees an overlap in std::string::insert and replace that is not there (bug 105651).
  $<$<AND:$<COMPILE_LANG_AND_ID:CXX,GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>)
# Floating-point contraction is chosen by the code (fused multiply-add in Highway), never by the
# compiler: two builds of one source must agree bit for bit.
target_compile_options(onebit_warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>)
