# Installs BUILD_FOLDER into a prefix of its own under WORK, builds CONSUMER against it and runs it.
file(REMOVE_RECURSE ${WORK})

function(must_succeed step)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output
                  ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${step} failed (${status}):\n${output}")
  endif()
endfunction()

must_succeed("installing" ${CMAKE_COMMAND} --install ${BUILD_FOLDER} --prefix ${WORK}/prefix)
must_succeed("configuring the consumer"
  ${CMAKE_COMMAND} -S ${CONSUMER} -B ${WORK}/build -G ${GENERATOR}
  -D CMAKE_PREFIX_PATH=${WORK}/prefix -D CMAKE_CXX_COMPILER=${COMPILER})
must_succeed("building the consumer" ${CMAKE_COMMAND} --build ${WORK}/build)
must_succeed("running the consumer" ${WORK}/build/consumer)
