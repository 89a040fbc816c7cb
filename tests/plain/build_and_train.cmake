# Builds the program of SOURCE in WORK without MPI and CUDA, with the last of COMPILERS that CMake accepts, and
# trains one step with it. RELEASE is a build of SOURCE.
file(REMOVE_RECURSE ${WORK})

function(must_succeed step)
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY ${SOURCE} RESULT_VARIABLE status OUTPUT_VARIABLE output
                  ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${step} failed (${status}):\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

string(REPLACE "," ";" COMPILERS "${COMPILERS}")
list(REVERSE COMPILERS)
foreach(compiler IN LISTS COMPILERS)
  get_filename_component(name ${compiler} NAME)
  execute_process(COMMAND ${CMAKE_COMMAND} --preset plain -B ${WORK}/${name} -D CMAKE_CXX_COMPILER=${compiler}
                          -D ONEBIT_FLOORS_FROM=${RELEASE}
                  WORKING_DIRECTORY ${SOURCE} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(status EQUAL 0)
    set(build ${WORK}/${name})
    break()
  endif()
  message(STATUS "not built with ${compiler}:\n${output}")
endforeach()
must_succeed("building" ${CMAKE_COMMAND} --build ${build} --target onebit_program)

set(program ${build}/onebit)
must_succeed("onebit doctor" ${program} doctor)
foreach(part IN ITEMS "MPI +not built in" "CUDA +not built in")
  if(NOT output MATCHES "${part}")
    message(FATAL_ERROR "onebit doctor prints no \"${part}\":\n${output}")
  endif()
endforeach()
must_succeed("preparing" ${program} prepare --input README.md --output ${WORK}/store --vocab-size 400)
must_succeed("training" ${program} pretrain --data ${WORK}/store --output ${WORK}/run --threads 1
  --recipe recipes/bert-tiny.json --set run.steps=1 --set data.sequence_length=32
  --set train_batch_size=4 --set train_micro_batch_size_per_gpu=4)
