# Test cases that a build leaves out, or runs in one schedule only. Every pattern must match a test
# (case_lists).

# The tests that use a device run on the emulated device, once in every schedule. The other tests
# are the same in every build.
set(ONEBIT_EMULATED_TESTS device ops attention updates comm transport compress model training pretrain squad classify tag embed
    emulated_cuda
    emulated_backend
  CACHE STRING "The tests that a build with the emulated device has")
set(ONEBIT_EMULATED_SCHEDULES late eager random:1 CACHE STRING "The schedules they run in")
# Tests of kernels alone run in the other schedules only: `eager` differs from `late` in when the work
# of a stream is done, not in the order of threads.
set(ONEBIT_EMULATED_KERNELS ops attention CACHE STRING "Tests that do not run in the schedule eager")
# Long tests of results, which do not depend on the schedule, run in the first one only.
set(ONEBIT_EMULATED_ONCE model CACHE STRING "Tests that run in the first schedule alone")
set(ONEBIT_EMULATED_ONCE_CASES "*OfFiftySteps*:*AsOnACpu:*FewRowsOfALargeMatrix*:\
Cuda/FamilyPasses.*:Cuda/LargeVocabulary.*")  # as GoogleTest names them
# Sanitizers check every operation. These take too long there: training that uses the same operations,
# finite differences of models that differ from others in the head only (training with each is checked),
# every key of a recipe with every kind of value, statistics, the choice among the emulated
# cuBLASLt's algorithms at many sizes, kernels in f16 that are those of bf16, and runs with
# further optimizers that resume or learn (one of each kind is checked, and each optimizer in one_bit).
set(ONEBIT_LONG_CASES "${ONEBIT_EMULATED_ONCE_CASES}:CudaParity.*:CudaTraining.*:Model/LayersLeftOut.*:\
Model/ModelGradient.Embedding/*:Model/ModelGradient.ClassificationWithWeights/*:\
Model/ModelGradient.ManyLabels/*:Model/ModelGradient.MaskedWordsAlone/*:Model/ModelGradient.Values/*:\
Model/ModelGradient.Tagging/*:Model/ModelGradient.Classification/*:Model/AnswerGradient.*:\
All/OptimizersTest.PackedMatricesChangeNoBit/*:*ElementwiseTest.CastsRound*/cuda*:\
UpdateBound.EntriesWhose*:UpdateBound.RowsOfRare*:UpdateBound.HeavyTails:UpdateBound.AllGradients*:\
OneBitLamb.StepsHaveTheLength*:NoiseRatio.VarianceFollowsAdams*:*OnebitSketchTest.TheSquaredSketchIsTheSquareOfTheGradient/cuda:\
All/OptimizersTest.ContinuesOnAnotherNumberOfRanks/*:RecipeSchema.JudgesEveryKeyAsTheParserDoes:\
*LinearTest.RowsThatAreNoWholeTiles*/cuda*:*LinearTest.AnotherContext*/cuda*:Backends/AttentionTest.*/cuda_f16:\
All/OptimizersTest.ResumesBitForBitFromEveryPhase/1:All/OptimizersTest.ResumesBitForBitFromEveryPhase/2:\
All/OptimizersTest.ACheckpointOfAnotherOptimizer*/1:All/OptimizersTest.ACheckpointOfAnotherOptimizer*/2:\
Model/ModelGradient.Pretraining/PostLnDropout:Model/ModelGradient.Pretraining/PreLnBf16:\
Model/ModelGradient.Pretraining/PostLnTanh:Backends/LinearTest.*/cuda_f16:Backends/ResidualNormTest.*/cuda_f16:\
All/OptimizersTest.TheModelIsTheCommonOne/1:All/OptimizersTest.TheModelIsTheCommonOne/2:All/OptimizersTest.Learns/2:\
TrapezoidalRuns.ResumeBitForBitInEachPhase*:TrapezoidalRuns.LearnTheSame*:LayerDropRuns.Resumes*:UnevenTest.OneBitAdamLearns")
# The thread sanitizer checks every kernel once, at a small size.
set(ONEBIT_RACE_TESTS "")
if(ONEBIT_CUDA STREQUAL "EMULATED")
  set(ONEBIT_RACE_TESTS ops attention updates emulated_cuda)
endif()
set(ONEBIT_RACE_CASES "EmulatedRaces.*:*BlockRaces.*:Backends/*/cuda_f16:Devices/*/cuda:\
*AttentionTest.RepeatsItself/cuda_f32:-*LinearTest.*:*RepeatsItself/cuda_f16:*CastsRound*:*KeepsTheBits*:\
*TheSquaredSketch*")
# It also leaves out tests of numbers over many steps whose threads call the same functions as in other
# tests, and a child without exec() whose parent has threads, because it cannot start threads there.
set(ONEBIT_LONG_THREADED_CASES "UpdateBound.EntriesWhose*:UpdateBound.RowsOfRare*:UpdateBound.HeavyTails:\
UpdateBound.AllGradients*:OneBitLamb.StepsHaveTheLength*:OneBitLamb.RatiosAreThoseOfLamb:ZeroOneAdam.LocalUpdatesFollowAdam:\
ZeroOneReference.FollowsTheRestatement*:ResidualPlacement.AChangedCut*:StateBytes.AreWhatIsHeld*:\
CompressedOptimizer.LoadsIntoAUsedOne*:EngineClipping.TheNormIsFollowed*:Engine.UpdatesFollowAdams*:\
WireCost.*:ParseJson.TakesTime*:StoreWriter.KeepsDuplicates*:PrepareTest.KilledRuns*")

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
  set_tests_properties(case_lists PROPERTIES TIMEOUT 600 ENVIRONMENT "${ONEBIT_TEST_ENVIRONMENT}")
endfunction()
