# One static library a floor (onebit_<floor>), one test program a floor.

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

# Most of the time of a small source goes to headers. Where the preset or ./run asks for it, those of
# libraries are compiled once, and sources of a target that have no name of their own in common are
# compiled as one (tools/source_units.py). A source that does not name what it needs is then not seen:
# ./run lint compiles some alone. nlohmann/json.hpp is not among the headers: what its inline functions
# instantiate takes 0.3 s in every source that has it, and most read no JSON.
option(ONEBIT_QUICK_BUILD "Read shared headers once for many sources" OFF)
set(ONEBIT_SOURCES_A_UNIT 8 CACHE STRING "The most sources that ONEBIT_QUICK_BUILD compiles as one")
mark_as_advanced(ONEBIT_SOURCES_A_UNIT)
find_package(Python3 COMPONENTS Interpreter QUIET)
set(ONEBIT_PRECOMPILED_HEADERS <algorithm> <array> <cmath> <cstring> <filesystem> <functional> <map>
  <memory> <mutex> <numeric> <optional> <set> <span> <string> <string_view> <thread> <utility> <vector>
  <fmt/format.h> <fmt/ranges.h>)
if(ONEBIT_QUICK_BUILD)
  # GCC takes precompiled headers of the standard library for the project's own, and warns of strings
  # in them where nothing is wrong (GCC 12).
  target_compile_options(onebit_warnings INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-array-bounds
    -Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread>)
endif()

# onebit_compile_quickly(target first_target HEADERS): where that is asked for. The first target compiles
# the headers, the others of its kind take them over.
function(onebit_compile_quickly target first)
  if(ONEBIT_QUICK_BUILD AND target STREQUAL first)
    target_precompile_headers(${target} PRIVATE ${ARGN})
  elseif(ONEBIT_QUICK_BUILD)
    target_precompile_headers(${target} REUSE_FROM ${first})
  endif()
  if(ONEBIT_QUICK_BUILD AND Python3_FOUND)
    onebit_compile_together(${target})
  endif()
endfunction()

# A local name may be that of another source of the unit; and only in the source that is compiled, not in
# what it includes, does GCC expect classes that use types of unnamed namespaces.
add_library(onebit_of_units INTERFACE)
target_compile_options(onebit_of_units INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-shadow>
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)

function(onebit_compile_together target)
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.cc$")
  execute_process(
    COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/tools/source_units.py
            ${ONEBIT_SOURCES_A_UNIT} ${sources}
    WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}
    OUTPUT_VARIABLE lines OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE ";" "|" lines "${lines}")
  string(REPLACE "\n" ";" lines "${lines}")
  set(number 0)
  foreach(line IN LISTS lines)
    math(EXPR number "${number} + 1")
    string(REPLACE "|" ";" members "${line}")
    set_source_files_properties(${members} PROPERTIES UNITY_GROUP ${target}_${number})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:onebit_of_units>)
endfunction()

# Kernels as C++ for the emulated device: bytes are looked at as numbers of other types, as nvcc
# allows, and its pragmas are for nvcc. Fibres need no watch over uses after a return: it takes three
# quarters of the time of a kernel.
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
set(ONEBIT_DEVICE_FLOORS base device kernels ops comm compress)
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
  if(ONEBIT_FLOORS_FROM AND NOT name IN_LIST ONEBIT_DEVICE_FLOORS)
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
  onebit_compile_quickly(onebit_${name} onebit_base ${ONEBIT_PRECOMPILED_HEADERS})
  set_property(GLOBAL APPEND PROPERTY ONEBIT_FLOORS onebit_${name})
endfunction()

# Every test program, and nothing else.
add_custom_target(onebit_tests)
function(onebit_run_test name)
  add_dependencies(onebit_tests test_${name})
  set_property(GLOBAL APPEND PROPERTY ONEBIT_TEST_PROGRAMS $<TARGET_FILE:test_${name}>)
endfunction()

# The tests that use a device, on the emulated one, once in every schedule: what the others test is
# the same in every build.
set(ONEBIT_EMULATED_TESTS device ops comm compress model training tasks emulated_cuda
  CACHE STRING "The tests that a build with the emulated device has")
set(ONEBIT_EMULATED_SCHEDULES late eager random:1 CACHE STRING "The schedules they run in")
# What takes long and is about results, not about orders, runs in the first schedule alone.
set(ONEBIT_EMULATED_ONCE model CACHE STRING "Tests that run in the first schedule alone")
set(ONEBIT_EMULATED_ONCE_CASES "*OfFiftySteps*:*AsOnACpu:*FewRowsOfALargeMatrix*")  # as GoogleTest names them
# Sanitizers look at every operation; what only trains with them takes too long there, and so do finite
# differences of models that differ from others in the head alone (training with each is looked at), every
# key of a recipe with every kind of value, statistics, and the choice among the emulated cuBLASLt's
# algorithms at many sizes.
set(ONEBIT_LONG_CASES "${ONEBIT_EMULATED_ONCE_CASES}:CudaParity.*:CudaTraining.*:Model/LayersLeftOut.*:\
Model/ModelGradient.Embedding/*:Model/ModelGradient.ClassificationWithWeights/*:\
Model/ModelGradient.ManyLabels/*:Model/ModelGradient.MaskedWordsAlone/*:Model/ModelGradient.Values/*:\
Model/ModelGradient.Tagging/*:Model/ModelGradient.Classification/*:Model/ModelGradient.QuestionAnswering/*:\
All/OptimizersTest.PackedMatricesChangeNoBit/*:*ElementwiseTest.CastsRound*/cuda*:\
NoiseRatio.VarianceFollowsAdams*:*OnebitSketchTest.TheSquaredSketchIsTheSquareOfTheGradient/cuda:\
All/OptimizersTest.ContinuesOnAnotherNumberOfRanks/*:RecipeSchema.JudgesEveryKeyAsTheParserDoes:\
*LinearTest.RowsThatAreNoWholeTiles*/cuda*:*LinearTest.AnotherContext*/cuda*")
# What the thread sanitizer sees of kernels: each of them once, where it is short.
set(ONEBIT_RACE_TESTS "")
if(ONEBIT_CUDA STREQUAL "EMULATED")
  set(ONEBIT_RACE_TESTS ops emulated_cuda)
endif()
set(ONEBIT_RACE_CASES "EmulatedRaces.*:*BlockRaces.*:Backends/*/cuda_f16:Devices/*/cuda:\
*AttentionTest.RepeatsItself/cuda_f32:-*LinearTest.*:*RepeatsItself/cuda_f16:*CastsRound*:*KeepsTheBits*:\
*TheSquaredSketch*")
# What it leaves out elsewhere: numbers that the same threads, calling as in other tests, come to over
# many steps.
set(ONEBIT_LONG_THREADED_CASES "OneBitLamb.RatiosAreThoseOfLamb:ZeroOneAdam.LocalUpdatesFollowAdam:\
ZeroOneReference.FollowsTheRestatement*:ResidualPlacement.AChangedCut*:StateBytes.AreWhatIsHeld*:\
CompressedOptimizer.LoadsIntoAUsedOne*:EngineClipping.TheNormIsFollowed*:Engine.UpdatesFollowAdams*:\
WireCost.*:ParseJson.TakesTime*:StoreWriter.KeepsDuplicates*")

# Adds a test that every case listed above exists in the programs of this build.
function(onebit_test_case_lists)
  if(ONEBIT_SANITIZE MATCHES "thread")
    set(patterns "${ONEBIT_LONG_THREADED_CASES}:${ONEBIT_RACE_CASES}")
  elseif(ONEBIT_SANITIZE)
    set(patterns "${ONEBIT_LONG_CASES}")
  elseif(ONEBIT_CUDA STREQUAL "EMULATED")
    set(patterns "${ONEBIT_EMULATED_ONCE_CASES}")
  else()
    return()
  endif()
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  get_property(programs GLOBAL PROPERTY ONEBIT_TEST_PROGRAMS)
  add_test(NAME case_lists COMMAND Python3::Interpreter -B
    ${PROJECT_SOURCE_DIR}/tools/check_case_lists.py "${patterns}" ${programs})
  set_tests_properties(case_lists PROPERTIES TIMEOUT 120 ENVIRONMENT "${ONEBIT_TEST_ENVIRONMENT}")
endfunction()

function(onebit_emulated_test name timeout cost)
  if(NOT name IN_LIST ONEBIT_EMULATED_TESTS)
    set_target_properties(test_${name} PROPERTIES EXCLUDE_FROM_ALL ON)
    return()
  endif()
  onebit_run_test(${name})
  set(schedules ${ONEBIT_EMULATED_SCHEDULES})
  if(name IN_LIST ONEBIT_EMULATED_ONCE)
    list(GET ONEBIT_EMULATED_SCHEDULES 0 schedules)
  endif()
  set(left_out "")
  foreach(schedule IN LISTS schedules)
    string(REPLACE ":" "_" suffix ${schedule})
    add_test(NAME ${name}_${suffix}
      COMMAND test_${name} --gtest_filter=*uda*:*CUDA*:*Nccl*:*Staged*:Emulated*${left_out})
    set(left_out "-${ONEBIT_EMULATED_ONCE_CASES}")
    set_tests_properties(${name}_${suffix} PROPERTIES TIMEOUT ${timeout} COST ${cost}
      ENVIRONMENT "${ONEBIT_TEST_ENVIRONMENT};ONEBIT_EMULATED_CUDA_SCHEDULE=${schedule};\
GTEST_OUTPUT=json:${results}/${name}_${suffix}.json")
  endforeach()
endfunction()

# What tests say is the same in every build, so one with the emulated device can link the objects of a
# release build of this tree with its own floors. Not those of tests that know how floors are compiled,
# such as their instruction sets; the first of these compiles the headers for the others.
set(ONEBIT_TESTS_FROM "" CACHE PATH "A release build whose test objects a build for tests takes")
mark_as_advanced(ONEBIT_TESTS_FROM)
set(ONEBIT_COMPILED_TESTS emulated_cuda compress kernels)
# Nor, for the thread sanitizer, of those whose own functions run on several threads.
if(ONEBIT_SANITIZE MATCHES "thread")
  list(APPEND ONEBIT_COMPILED_TESTS base comm data)
endif()
function(onebit_take_test name)
  set(list ${ONEBIT_TESTS_FROM}/test-objects/${name}.txt)
  if(NOT ONEBIT_CUDA STREQUAL "EMULATED" OR NOT EXISTS ${list})
    message(FATAL_ERROR "ONEBIT_TESTS_FROM is for ONEBIT_CUDA=EMULATED and names a release build of this tree "
                        "with its tests; there is no ${list}")
  endif()
  file(READ ${list} objects)
  list(FILTER objects INCLUDE REGEX "\\.o$")
  add_executable(test_${name} ${objects})
  set_target_properties(test_${name} PROPERTIES LINKER_LANGUAGE CXX)
endfunction()

# onebit_compiled_test(name SOURCE...)
function(onebit_compiled_test name)
  add_executable(test_${name} ${ARGN})
  target_link_libraries(test_${name} PRIVATE onebit_warnings onebit_caller)
  # What takes time is in the floors; tests compile in two thirds of the time with -O1.
  target_compile_options(test_${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  set(first base)
  if(ONEBIT_CUDA STREQUAL "EMULATED")
    list(GET ONEBIT_COMPILED_TESTS 0 first)
  endif()
  onebit_compile_quickly(test_${name} test_${first} ${ONEBIT_PRECOMPILED_HEADERS} <gmock/gmock.h>
                         <gtest/gtest.h>)
  file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/test-objects/${name}.txt
       CONTENT "$<TARGET_OBJECTS:test_${name}>")
endfunction()

# onebit_link_first(target FLOOR...): of the functions that headers define, which several objects contain,
# the linker keeps the first copy. The tests' objects are not instrumented by every sanitizer (or by none,
# ONEBIT_TESTS_FROM), so the floors, and those that they depend on, are linked before them, as a whole.
function(onebit_link_first target)
  set(floors "")
  set(pending ${ARGN})
  while(pending)
    list(POP_FRONT pending floor)
    if(NOT TARGET onebit_${floor} OR floor IN_LIST floors)
      continue()
    endif()
    list(APPEND floors ${floor})
    get_target_property(libraries onebit_${floor} INTERFACE_LINK_LIBRARIES)
    list(FILTER libraries INCLUDE REGEX "^onebit_")
    list(TRANSFORM libraries REPLACE "^onebit_" "")
    list(APPEND pending ${libraries})
  endwhile()
  set(files "")
  foreach(floor IN LISTS floors)
    get_target_property(type onebit_${floor} TYPE)
    if(type STREQUAL "STATIC_LIBRARY")
      string(APPEND files " $<TARGET_FILE:onebit_${floor}>")
    endif()
  endforeach()
  target_link_options(${target} PRIVATE "SHELL:-Wl,--whole-archive${files} -Wl,--no-whole-archive")
endfunction()

# onebit_test(text [SOURCES reference.cc] DEPENDS text [RANKS 2 4] [TIMEOUT 300] [COST 70])
# Makes test_<name> of every *_test.cc of the folder and of SOURCES, run once alone, and once under
# mpirun for every number in RANKS. Results lie in test-results/<name>.json, of ranks in
# test-results/<name>_mpi<ranks>/<rank>.json. COST: its seconds, where they are many: ctest begins with
# the longest, so that none is left alone at the end.
function(onebit_test name)
  cmake_parse_arguments(TEST "" "TIMEOUT;COST" "SOURCES;DEPENDS;LIBRARIES;RANKS" ${ARGN})
  if(NOT TEST_TIMEOUT)
    set(TEST_TIMEOUT 600)
  endif()
  onebit_test_timeout(${TEST_TIMEOUT} TEST_TIMEOUT)
  if(NOT TEST_COST)
    set(TEST_COST 1)
  endif()
  file(GLOB tests CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} *_test.cc)
  if(ONEBIT_TESTS_FROM AND NOT name IN_LIST ONEBIT_COMPILED_TESTS)
    onebit_take_test(${name})
  else()
    onebit_compiled_test(${name} ${tests} ${TEST_SOURCES})
  endif()
  target_link_libraries(test_${name} PRIVATE GTest::gtest ${TEST_LIBRARIES})
  foreach(dependency IN LISTS TEST_DEPENDS)
    target_link_libraries(test_${name} PRIVATE onebit_${dependency})
  endforeach()
  if(ONEBIT_SANITIZE)
    onebit_link_first(test_${name} ${TEST_DEPENDS})
  endif()
  target_compile_definitions(test_${name} PRIVATE ONEBIT_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  if((ONEBIT_SANITIZE MATCHES "thread" AND NOT name IN_LIST ONEBIT_THREADED_TESTS
      AND NOT name IN_LIST ONEBIT_RACE_TESTS)
     OR (ONEBIT_SANITIZE AND name IN_LIST ONEBIT_UNSANITIZED_TESTS))
    set_target_properties(test_${name} PROPERTIES EXCLUDE_FROM_ALL ON)
    return()
  endif()
  set(results ${CMAKE_BINARY_DIR}/test-results)
  set(filter "")
  if(ONEBIT_CUDA STREQUAL "EMULATED" AND NOT ONEBIT_SANITIZE)
    onebit_emulated_test(${name} ${TEST_TIMEOUT} ${TEST_COST})
    return()
  elseif(ONEBIT_SANITIZE MATCHES "thread" AND name IN_LIST ONEBIT_RACE_TESTS)
    set(filter "--gtest_filter=${ONEBIT_RACE_CASES}")
  elseif(ONEBIT_SANITIZE MATCHES "thread")
    set(filter "--gtest_filter=-${ONEBIT_LONG_CASES}:${ONEBIT_LONG_THREADED_CASES}")
  elseif(ONEBIT_SANITIZE)
    set(filter "--gtest_filter=-${ONEBIT_LONG_CASES}")
  endif()
  onebit_run_test(${name})
  add_test(NAME ${name} COMMAND test_${name} ${filter})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${TEST_TIMEOUT} COST ${TEST_COST}
    ENVIRONMENT "${ONEBIT_TEST_ENVIRONMENT};GTEST_OUTPUT=json:${results}/${name}.json")
  # MPI itself is not instrumented for the thread sanitizer.
  if(ONEBIT_HAS_MPI AND NOT ONEBIT_SANITIZE MATCHES "thread")
    foreach(ranks IN LISTS TEST_RANKS)
      set(json "${results}/${name}_mpi${ranks}/$OMPI_COMM_WORLD_RANK.json")
      add_test(NAME ${name}_mpi${ranks}
        COMMAND mpirun --allow-run-as-root --oversubscribe --bind-to none -np ${ranks}
                sh -c "GTEST_OUTPUT=json:${json} exec $<TARGET_FILE:test_${name}> \
--gtest_filter=*Mpi*")
      set_tests_properties(${name}_mpi${ranks} PROPERTIES TIMEOUT ${TEST_TIMEOUT} PROCESSORS 2
        ENVIRONMENT "${ONEBIT_TEST_ENVIRONMENT};${ONEBIT_MPI_TEST_ENVIRONMENT}")
    endforeach()
  endif()
endfunction()
