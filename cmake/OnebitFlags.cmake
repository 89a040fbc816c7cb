# What every target is compiled with.
include(GNUInstallDirs)
# Another compiler than the project's may warn of something new, which must not stop a user's build.
option(ONEBIT_WARNINGS_ARE_ERRORS "A warning ends the build (./run test and ./run lint turn it on)" OFF)
set(ONEBIT_WARNINGS_END $<$<BOOL:${ONEBIT_WARNINGS_ARE_ERRORS}>:-Werror>)

add_library(onebit_flags INTERFACE)
target_include_directories(onebit_flags INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(onebit_flags INTERFACE cxx_std_20)

add_library(onebit_warnings INTERFACE)
target_compile_options(onebit_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra ${ONEBIT_WARNINGS_END} -Wshadow -Wnon-virtual-dtor -Wold-style-cast
    -Woverloaded-virtual -Wno-psabi -Wno-missing-field-initializers>
  $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wno-missing-braces>)
# Floating-point contraction is chosen by the code (fused multiply-add in Highway), never by the
# compiler: two builds of one source must agree bit for bit.
target_compile_options(onebit_warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>)
