"""Tests found by name: tests/<floor>/adam_test.cc, or adam_resume_test.cc where one file is not
enough, tests onebit/<wing>/<floor>/adam.*. check_layout.py asks for it, and the exceptions are here."""
import re
from pathlib import Path

# Families of operations have a rule of their own in check_layout.py.
OTHER_RULES = {"ops", "attention", "updates"}

# Tests of what several files do together, by what a whole floor or program promises.
TESTS_OF_A_WHOLE = {
    "cli/classify_command_test": "the commands of an application as their user sees them",
    "cli/embed_command_test": "the commands of an application as their user sees them",
    "cli/pretrain_command_test": "the commands of an application as their user sees them",
    "cli/search_command_test": "the commands of an application as their user sees them",
    "cli/squad_command_test": "the commands of an application as their user sees them",
    "cli/tag_command_test": "the commands of an application as their user sees them",
    "cli/network_test": "two ranks of the program over a slow link",
    "cli/serve_examples_test": "the files of examples/serve",
    "cli/use_models_test": "the example of the library",
    "cli/program_test": "the program as its user sees it",
    "transport/contract_test": "one body for every transport",
    "transport/device_transport_test": "which transport goes between devices",
    "transport/failing_rank_test": "a rank that fails ends all of them",
    "compress/conservation_test": "error feedback loses nothing",
    "compress/cuda_all_reduce_test": "ranks on a CUDA device have the bits of ranks on CPUs",
    "compress/small_signal_test": "how much of a small signal arrives, and when",
    "compress/wire_cost_test": "bytes sent, counted at the transport",
    "engine/mpi_engine_test": "processes train to the bits of threads",
    "formats/hostile_files_test": "every golden file, cut short and damaged",
    "model/cuda_parity_test": "training on a CUDA device and on a CPU",
    "model/dropout_test": "masks belong to tokens, not to micro-batches",
    "model/families_test": "every family of encoders, as transformers computes it",
    "model/families_types_test": "families in 16 bits and on CUDA devices",
    "model/golden_test": "Hugging Face's model",
    "model/golden_wide_test": "Hugging Face's model where vectors and tiles are filled",
    "model/gradient_test": "central differences of pre-training",
    "model/gradients_ready_test": "the order in which pre-training announces gradients",
    "model/limits_test": "batches at the edges of the plan",
    "model/memory_options_test": "trading memory for time changes no number",
    "model/packing_test": "a sequence does not see its neighbours",
    "model/parameters_test": "names, shapes and initial values of parameters",
    "one_bit/bucket_limits_test": "1-bit Adam clipped by bucket",
    "one_bit/mpi_training_test": "processes train to the bits of threads",
    "one_bit/residual_placement_test": "residuals on another number of ranks",
    "optim/state_bytes_test": "the memory of every optimizer",
    "optim/update_bound_test": "a bound on the single updates of every optimizer",
    "one_bit/warmup_observation_test": "what is measured at the end of the warm-up",
    "plan/measured_steps_test": "steps that were measured over shaped links",
    "pretrain/adamw_golden_test": "twenty steps of PyTorch",
    "pretrain/cuda_training_test": "training on CUDA devices",
    "training/deepspeed_configs_test": "configurations as DeepSpeed's users write them",
}

# In these floors every header has a test of its name, or is listed here with the test that covers it.
COVERED_FLOORS = ("text", "corpus", "samples", "batches", "squad", "records", "classify", "tag",
                  "embed", "serve")
COVERED_BY = {
    "corpus/store": "corpus/token_store_test",
    "samples/hdf5_rows": "samples/hdf5_reader_test",
    "tokenizer_files/added_tokens": "tokenizer_files/tokenizer_files_test",
    "text/character_map": "tokenizer_files/pipeline_json_test",
    "text/characters": "text/basic_tokenizer_test",
    "text/decoder": "tokenizer_files/component_json_test",
    "text/normalizer": "tokenizer_files/pipeline_json_test",
    "text/pieces": "tokenizer_files/pipeline_json_test",
    "text/pipeline": "tokenizer_files/pipeline_json_test",
    "text/pre_tokenizer": "tokenizer_files/pipeline_json_test",
    "text/subword_models": "tokenizer_files/pipeline_json_test",
    "text/unicode_classes": "text/basic_tokenizer_test",
    "text/unicode_mapping": "text/basic_tokenizer_test",
    "text/word_splitter": "text/tokenizer_test",
    "corpus/byte_stream": "corpus/text_source_test",
    "corpus/store_manifest": "corpus/token_store_test",
    "corpus/vocabulary_choice": "corpus/prepare_test",
    "batches/batch": "batches/batch_stream_test",
    "batches/pair_options": "batches/pair_walk_test",
    "classify/classify_command": "cli/classify_command_test",
    "embed/embed_config": "embed/embed_task_test",
    "embed/embed_command": "cli/embed_command_test",
    "squad/squad_config": "squad/squad_task_test",
    "squad/answerer": "squad/squad_task_test",
    "search/search_command": "cli/search_command_test",
    "squad/squad_command": "cli/squad_command_test",
    "tag/tag_config": "tag/tag_task_test",
    "tag/tagger": "tag/tag_task_test",
    "tag/tag_command": "cli/tag_command_test",
    "serve/endpoints": "serve/embedding_endpoints_test",
}


def stems(names, top, pattern):
    """{floor: names without folder and ending} of the files below `top` that match."""
    found = {}
    for name in names:
        match = re.fullmatch(rf"{top}/(\w+)/({pattern})", name)
        if match:
            found.setdefault(match.group(1), set()).add(Path(match.group(2)).stem)
    return found


def is_named_after(test, sources):
    subject = test.removesuffix("_test")
    return any(subject == source or subject.startswith(source + "_") for source in sources)


def check(report, names):
    sources = stems(names, r"onebit/\w+", r"\w+\.(h|cc|cu)")
    headers = stems(names, r"onebit/\w+", r"\w+\.h")
    tests = stems(names, "tests", r"\w+_test\.(cc|py)")
    for floor in sorted(set(tests) & set(sources) - OTHER_RULES):
        for test in sorted(tests[floor]):
            path = f"{floor}/{test}"
            if not is_named_after(test, sources[floor]) and path not in TESTS_OF_A_WHOLE:
                report.add(f"tests/{path}", 1, f"is named after no file of floor {floor}: rename "
                           "it, or give its reason in TESTS_OF_A_WHOLE of tools/tests_by_name.py")
    for floor in COVERED_FLOORS:
        for header in sorted(headers.get(floor, ())):
            wanted = COVERED_BY.get(f"{floor}/{header}", f"{floor}/{header}_test")
            if Path(wanted).name not in tests.get(Path(wanted).parts[0], ()):
                report.add(f"tests/{floor}", 1, f"there is no tests/{wanted}.cc for {header}.h: write "
                           "it, or name the test that covers it in COVERED_BY of "
                           "tools/tests_by_name.py")
    check_exceptions(report, sources, headers, tests)


def check_exceptions(report, sources, headers, tests):
    """Exceptions that nothing needs any more."""
    for path in sorted(TESTS_OF_A_WHOLE):
        floor, test = path.split("/")
        if floor in tests and (test not in tests[floor]
                               or is_named_after(test, sources.get(floor, ()))):
            report.add("tools/tests_by_name.py", 1, f"TESTS_OF_A_WHOLE: {path} needs no exception")
    for path in sorted(COVERED_BY):
        floor, header = path.split("/")
        if floor in tests and (header not in headers.get(floor, ())
                               or f"{header}_test" in tests[floor]):
            report.add("tools/tests_by_name.py", 1, f"COVERED_BY: {path} needs no exception")
