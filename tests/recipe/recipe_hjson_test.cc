#include "onebit/ground/recipe/recipe.h"

#include <gtest/gtest.h>

namespace onebit {
namespace {

TEST(Hjson, CommentsAndLastCommasBecomeBlanks) {
  EXPECT_EQ(without_hjson("[1, # one\n 2,]"), "[1,      \n 2 ]");
  EXPECT_EQ(without_hjson(R"({"#a,": "//,]"})"), R"({"#a,": "//,]"})");
}

TEST(Hjson, WhatJsonDoesNotHaveIsFound) {
  EXPECT_EQ(hjson_in("{\n  train_batch_size: 8\n}"),
            "the word \"train_batch_size\" without quotes");
  EXPECT_EQ(hjson_in(R"({"type": AdamW})"), "the word \"AdamW\" without quotes");
  EXPECT_EQ(hjson_in("{\"a\": 1\n \"b\": 2}"), "no comma before \"b\"");
  EXPECT_EQ(hjson_in("{\"a\": {}\n \"b\": 2}"), "no comma before \"b\"");
  EXPECT_EQ(hjson_in("[1 2]"), "no comma before 2");
  EXPECT_EQ(hjson_in("{\"a\": 'x'}"), "a text in single quotes");
  EXPECT_EQ(hjson_in("{\"a\": 1, // it's\n \"b\": [-1e-3, NaN, true, {\"c\": null}]"), "")
      << "a bracket is missing, which Hjson needs as well";
  EXPECT_EQ(hjson_in("{\"a\": \"it's\"\n  /* 'x' */ ,, }"), "");
}

}  // namespace
}  // namespace onebit
