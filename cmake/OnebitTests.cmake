# One test program a floor (test_<floor>).

# Every test program, and nothing else.
add_custom_target(onebit_tests)
function(onebit_run_test name)
  add_dependencies(onebit_tests test_${name})
  set_property(GLOBAL APPEND PROPERTY ONEBIT_TEST_PROGRAMS $<TARGET_FILE:test_${name}>)
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
  if(name IN_LIST ONEBIT_EMULATED_KERNELS)
    list(REMOVE_ITEM schedules eager)
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

# Tests are the same in every build, so a build with the emulated device can link a release build's
# test objects with its own floors. The exceptions depend on how floors are compiled, for example on
# their instruction sets. The first of them compiles the headers for the others.
set(ONEBIT_TESTS_FROM "" CACHE PATH "A release build whose test objects a build for tests takes")
mark_as_advanced(ONEBIT_TESTS_FROM)
set(ONEBIT_COMPILED_TESTS emulated_cuda emulated_backend compress kernels)
# With the thread sanitizer, tests that start threads of their own are compiled, too.
if(ONEBIT_SANITIZE MATCHES "thread")
  list(APPEND ONEBIT_COMPILED_TESTS base batches comm serve)
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
  # What takes time is in the floors. With -O1 tests compile in two thirds of the time.
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

# onebit_link_first(target FLOOR...): links these floors and those that they depend on before the target's
# own objects, as a whole. Several objects contain the functions that a header defines, and the linker
# keeps the first copy: it has to be a floor's, because the tests' objects lack some or all
# instrumentation (onebit_caller, ONEBIT_TESTS_FROM).
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
  set(taken "")  # from a release build: behind those that are instrumented
  foreach(floor IN LISTS floors)
    get_target_property(type onebit_${floor} TYPE)
    get_target_property(is_taken onebit_${floor} IMPORTED)
    if(is_taken)
      string(APPEND taken " $<TARGET_FILE:onebit_${floor}>")
    elseif(type STREQUAL "STATIC_LIBRARY")
      string(APPEND files " $<TARGET_FILE:onebit_${floor}>")
    endif()
  endforeach()
  string(APPEND files "${taken}")
  target_link_options(${target} PRIVATE "SHELL:-Wl,--whole-archive${files} -Wl,--no-whole-archive")
endfunction()

# onebit_test(text [FOLDER text] [SOURCES reference.cc] DEPENDS text [RANKS 2 4] [TIMEOUT 300] [COST 70])
# Makes test_<name> of every *_test.cc of the folder (without FOLDER: the current one) and of SOURCES,
# run once alone, and once under mpirun for every number in RANKS. Results lie in
# test-results/<name>.json, of ranks in test-results/<name>_mpi<ranks>/<rank>.json. COST: its seconds,
# where they are many: ctest begins with the longest, so that none is left alone at the end. TIMEOUT:
# only a test that hangs needs so many seconds, however busy the machine is.
function(onebit_test name)
  cmake_parse_arguments(TEST "" "FOLDER;TIMEOUT;COST" "SOURCES;DEPENDS;LIBRARIES;RANKS" ${ARGN})
  set(in_folder "")
  if(TEST_FOLDER)
    set(in_folder ${TEST_FOLDER}/)
  endif()
  if(NOT TEST_TIMEOUT)
    set(TEST_TIMEOUT 1800)
  endif()
  onebit_test_timeout(${TEST_TIMEOUT} TEST_TIMEOUT)
  if(NOT TEST_COST)
    set(TEST_COST 1)
  endif()
  file(GLOB tests CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} ${in_folder}*_test.cc)
  if(ONEBIT_TESTS_FROM AND NOT name IN_LIST ONEBIT_COMPILED_TESTS)
    onebit_take_test(${name})
  else()
    onebit_compiled_test(${name} ${tests} ${TEST_SOURCES})
  endif()
  set_target_properties(test_${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/${TEST_FOLDER})
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
