# Installing gives find_package(onebit) and the target onebit::onebit, headers as they stand.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
get_property(floors GLOBAL PROPERTY ONEBIT_FLOORS)
add_library(onebit_all INTERFACE)
set_target_properties(onebit_all PROPERTIES EXPORT_NAME onebit)
add_library(onebit::onebit ALIAS onebit_all)
target_link_libraries(onebit_all INTERFACE ${floors})
# The emulated device is for tests only.
if(ONEBIT_CUDA STREQUAL "EMULATED")
  install(CODE "message(FATAL_ERROR \"ONEBIT_CUDA=EMULATED is for tests and is not installed\")")
  return()
endif()
install(TARGETS ${floors} onebit_flags onebit_all EXPORT onebitTargets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
# The floor `kernels` installs the types in the arguments of operations, and `attention` its
# contract. `cli` is a program and installs no header.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/onebit DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h"
        REGEX "/onebit/(math/kernels|program/cli)$" EXCLUDE
        PATTERN "mpi_job.h" EXCLUDE
        PATTERN "mpi_calls.h" EXCLUDE
        REGEX "/onebit/math/attention/attention_[^/]*$" EXCLUDE
        PATTERN "*_inl.h" EXCLUDE)
install(FILES onebit/math/kernels/blocks.h onebit/math/kernels/dropout.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/onebit/math/kernels)
# What a program loads when MPI has started it (transport/mpi_job.cc).
if(ONEBIT_HAS_MPI)
  install(TARGETS onebit_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/onebit COMPONENT mpi)
endif()
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/recipes DESTINATION ${CMAKE_INSTALL_DATADIR}/onebit COMPONENT program)
install(EXPORT onebitTargets NAMESPACE onebit:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/onebit)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/onebitConfig.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/onebitConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/onebit)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/onebitConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/onebitConfig.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/onebitConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/onebit)
