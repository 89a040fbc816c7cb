# One static library a floor (onebit_<floor>).

# Compiles kernels as C++ for the emulated device. They read bytes as numbers of other types, which nvcc
# allows, and contain nvcc's pragmas. The check for uses after a return (ONEBIT_KERNEL_OPTIONS) is left
# out: with fibres it takes three quarters of a kernel's time.
function(onebit_compile_kernels)
  foreach(source IN LISTS ARGN)
    if(ONEBIT_CUDA STREQUAL "EMULATED" AND source MATCHES "\\.cu$")
      set_source_files_properties(${source} PROPERTIES LANGUAGE CXX
        COMPILE_OPTIONS "-fno-strict-aliasing;-Wno-unknown-pragmas;${ONEBIT_KERNEL_OPTIONS}")
    endif()
  endforeach()
endfunction()

# Floors whose sources depend neither on CUDA nor on MPI are the same in every build: a build with the emulated
# device, or one without both, can link those of a release build of this tree, and the program's own objects.
# `base` compiles the headers for the others.
set(ONEBIT_FLOORS_FROM "" CACHE PATH "A release build whose floors a build for tests takes")
mark_as_advanced(ONEBIT_FLOORS_FROM)
# These depend on one of the two, so such a build compiles its own.
set(ONEBIT_OWN_FLOORS base device kernels ops attention updates comm transport compress)
# The thread sanitizer watches these, too. The others start no threads. Threads of a server call models of
# the applications, whose own code is not watched: what it calls in these floors is.
if(ONEBIT_SANITIZE MATCHES "thread")
  list(APPEND ONEBIT_OWN_FLOORS tensor model text corpus batches optim one_bit engine checkpoint training
    serve)
endif()
if(ONEBIT_FLOORS_FROM AND NOT ONEBIT_CUDA STREQUAL "EMULATED" AND (ONEBIT_HAS_MPI OR ONEBIT_HAS_CUDA))
  message(FATAL_ERROR "ONEBIT_FLOORS_FROM is for builds with ONEBIT_CUDA=EMULATED, or with ONEBIT_MPI=OFF and "
                      "ONEBIT_CUDA=OFF")
endif()
function(onebit_take_floor name)
  cmake_parse_arguments(FLOOR "" "" "SOURCES;DEPENDS;LIBRARIES" ${ARGN})
  set(library ${ONEBIT_FLOORS_FROM}/floors/${name}/libonebit_${name}.a)
  if(NOT EXISTS ${library})
    message(FATAL_ERROR "ONEBIT_FLOORS_FROM names a release build of this tree; there is no ${library}")
  endif()
  add_library(onebit_${name} STATIC IMPORTED GLOBAL)
  set_target_properties(onebit_${name} PROPERTIES IMPORTED_LOCATION ${library})
  target_link_libraries(onebit_${name} INTERFACE onebit_flags ${FLOOR_LIBRARIES})
  foreach(dependency IN LISTS FLOOR_DEPENDS)
    target_link_libraries(onebit_${name} INTERFACE onebit_${dependency})
  endforeach()
endfunction()

# onebit_floor(name SOURCES a.cc b.cc DEPENDS base device LIBRARIES PkgConfig::x)
function(onebit_floor name)
  if(ONEBIT_FLOORS_FROM AND NOT name IN_LIST ONEBIT_OWN_FLOORS)
    onebit_take_floor(${name} ${ARGN})
    return()
  endif()
  cmake_parse_arguments(FLOOR "" "" "SOURCES;DEPENDS;LIBRARIES" ${ARGN})
  onebit_compile_kernels(${FLOOR_SOURCES})
  add_library(onebit_${name} STATIC ${FLOOR_SOURCES})
  add_library(onebit::${name} ALIAS onebit_${name})
  set_target_properties(onebit_${name} PROPERTIES EXPORT_NAME ${name})
  target_link_libraries(onebit_${name} PUBLIC onebit_flags PRIVATE $<BUILD_INTERFACE:onebit_warnings>)
  foreach(dependency IN LISTS FLOOR_DEPENDS)
    target_link_libraries(onebit_${name} PUBLIC onebit_${dependency})
  endforeach()
  target_link_libraries(onebit_${name} PUBLIC ${FLOOR_LIBRARIES})
  if(ONEBIT_SANITIZE AND name IN_LIST ONEBIT_OPTIMIZED_FLOORS)
    target_compile_options(onebit_${name} PRIVATE -O1)
  endif()
  onebit_compile_quickly(onebit_${name} onebit_base ${ONEBIT_PRECOMPILED_HEADERS})
  set_property(GLOBAL APPEND PROPERTY ONEBIT_FLOORS onebit_${name})
endfunction()
