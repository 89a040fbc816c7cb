# Builds the program of SOURCE in WORK without MPI and CUDA, with COMPILER and its FLAGS, and
# trains one step with it. RELEASE is a build of SOURCE, and WARNINGS its ONEBIT_WARNINGS_ARE_ERRORS.
file(REMOVE_RECURSE ${WORK})

function(must_succeed step)
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY ${SOURCE} RESULT_VARIABLE status OUTPUT_VARIABLE output
                  ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${step} failed (${status}):\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

set(build ${WORK}/build)
must_succeed("configuring" ${CMAKE_COMMAND} --preset plain -B ${build} -D CMAKE_CXX_COMPILER=${COMPILER}
  -D CMAKE_CXX_FLAGS=${FLAGS}
  -D ONEBIT_FLOORS_FROM=${RELEASE} -D ONEBIT_WARNINGS_ARE_ERRORS=${WARNINGS})
must_succeed("building" ${CMAKE_COMMAND} --build ${build} --target onebit_program)

set(program ${build}/onebit)
must_succeed("onebit doctor" ${program} doctor)
foreach(part IN ITEMS "MPI +cannot be used" "CUDA +not built in")
  if(NOT output MATCHES "${part}")
    message(FATAL_ERROR "onebit doctor prints no \"${part}\":\n${output}")
  endif()
endforeach()
must_succeed("preparing" ${program} prepare --input README.md --output ${WORK}/store --vocab-size 400)
must_succeed("training" ${program} pretrain --data ${WORK}/store --output ${WORK}/run --threads 1
  --recipe recipes/bert-tiny.json --set run.steps=1 --set data.sequence_length=32
  --set train_batch_size=4 --set train_micro_batch_size_per_gpu=4)
