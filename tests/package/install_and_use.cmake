# Installs BUILD_FOLDER into a prefix of its own under WORK, builds CONSUMER against it and runs it.
file(REMOVE_RECURSE ${WORK})

function(must_succeed step)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output
                  ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${step} failed (${status}):\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

must_succeed("installing" ${CMAKE_COMMAND} --install ${BUILD_FOLDER} --prefix ${WORK}/prefix)

if(NOT EXISTS ${WORK}/prefix/share/doc/onebit/LICENSE)
  message(FATAL_ERROR "LICENSE is not installed")
endif()

# Not every machine with MPI has the library of its former C++ bindings.
set(plugin ${WORK}/prefix/lib/onebit/libonebit_mpi.so)
if(EXISTS ${plugin})
  must_succeed("reading ${plugin}" readelf -d ${plugin})
  if(NOT output MATCHES "libmpi" OR output MATCHES "libmpi_cxx")
    message(FATAL_ERROR "${plugin} needs other libraries of MPI than libmpi:\n${output}")
  endif()
endif()

# An installed header includes installed headers only.
file(GLOB_RECURSE headers ${WORK}/prefix/include/onebit/*.h)
foreach(header IN LISTS headers)
  file(STRINGS ${header} includes REGEX "^#include \"onebit/")
  foreach(line IN LISTS includes)
    string(REGEX REPLACE ".*\"(.*)\".*" "\\1" included "${line}")
    if(NOT EXISTS ${WORK}/prefix/include/${included})
      message(FATAL_ERROR "${header} includes ${included}, which is not installed")
    endif()
  endforeach()
endforeach()

must_succeed("configuring the consumer"
  ${CMAKE_COMMAND} -S ${CONSUMER} -B ${WORK}/build -G ${GENERATOR}
  -D CMAKE_PREFIX_PATH=${WORK}/prefix -D CMAKE_CXX_COMPILER=${COMPILER})
must_succeed("building the consumer" ${CMAKE_COMMAND} --build ${WORK}/build)
must_succeed("running the consumer" ${WORK}/build/consumer)

# A model of the installed program, and its vectors from the example.
file(WRITE ${WORK}/text.txt "a bird was here\nthe king was here\n\na child was here\nthe end was here\n")
file(WRITE ${WORK}/recipe.json [[{"train_batch_size": 2,
  "optimizer": {"type": "AdamW", "params": {"lr": 1e-3}},
  "model": {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
            "intermediate_size": 32, "max_position_embeddings": 32},
  "data": {"sequence_length": 32}, "run": {"steps": 1}}]])
must_succeed("preparing text" ${WORK}/prefix/bin/onebit prepare --input ${WORK}/text.txt
  --output ${WORK}/corpus --vocab-size 60 --format lines)
must_succeed("pre-training" ${WORK}/prefix/bin/onebit pretrain --recipe ${WORK}/recipe.json
  --data ${WORK}/corpus --output ${WORK}/run --device cpu)
must_succeed("using the model" ${WORK}/build/use_models vectors ${WORK}/run "the king" "a bird")
string(REGEX MATCHALL "[^ \n]+" numbers "${output}")
list(LENGTH numbers count)
if(NOT count EQUAL 32)
  message(FATAL_ERROR "two vectors have 32 numbers, not ${count}:\n${output}")
endif()

# Without REQUIRED, find_package() is no error if a library that onebit needs is missing.
must_succeed("looking for onebit without its libraries"
  ${CMAKE_COMMAND} -E env PKG_CONFIG_LIBDIR=${WORK} PKG_CONFIG_PATH=
  ${CMAKE_COMMAND} -S ${CONSUMER}/../optional -B ${WORK}/optional -G ${GENERATOR}
  -D CMAKE_PREFIX_PATH=${WORK}/prefix -D CMAKE_CXX_COMPILER=${COMPILER})

# A newer compiler may warn of something new. That ends no build of a user, and the headers lie where
# the user wants them.
set(warnings ${WORK}/warnings)
must_succeed("configuring a source that warns"
  ${CMAKE_COMMAND} -S ${CONSUMER}/../warnings -B ${warnings} -G ${GENERATOR}
  -D CMAKE_CXX_COMPILER=${COMPILER} -D CMAKE_INSTALL_INCLUDEDIR=headers
  -D CMAKE_INSTALL_PREFIX=${warnings}/prefix)
must_succeed("building a source that warns" ${CMAKE_COMMAND} --build ${warnings})
must_succeed("installing flags" ${CMAKE_COMMAND} --install ${warnings})
file(READ ${warnings}/prefix/flags.cmake flags)
if(NOT flags MATCHES "_IMPORT_PREFIX}/headers\"")
  message(FATAL_ERROR "the flags do not name the folder of installed headers:\n${flags}")
endif()
must_succeed("configuring with errors"
  ${CMAKE_COMMAND} -D ONEBIT_WARNINGS_ARE_ERRORS=ON ${warnings})
execute_process(COMMAND ${CMAKE_COMMAND} --build ${warnings} RESULT_VARIABLE status
                OUTPUT_QUIET ERROR_QUIET)
if(status EQUAL 0)
  message(FATAL_ERROR "the source that is to warn gives no warning")
endif()
