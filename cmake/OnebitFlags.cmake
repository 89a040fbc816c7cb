# What every target is compiled with.
add_library(onebit_flags INTERFACE)
target_include_directories(onebit_flags INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:include>)
target_compile_features(onebit_flags INTERFACE cxx_std_20)

add_library(onebit_warnings INTERFACE)
target_compile_options(onebit_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Werror -Wshadow -Wnon-virtual-dtor -Wold-style-cast
    -Woverloaded-virtual -Wno-psabi -Wno-missing-field-initializers>
  $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wno-missing-braces>)
# Floating-point contraction is chosen by the code (fused multiply-add in Highway), never by the
# compiler: two builds of one source must agree bit for bit.
target_compile_options(onebit_warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>)
