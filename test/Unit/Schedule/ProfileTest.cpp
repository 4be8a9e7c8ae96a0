// Profiles: what they say, and where they are wrong.
#include "cleave/Schedule/Profile.h"
#include "gtest/gtest.h"
#include <random>

using namespace cleave::schedule;

static std::string getProblem(llvm::StringRef text) {
  std::vector<ProfileEntry> entries;
  std::optional<ProfileProblem> problem = readProfile(text, entries);
  if (!problem)
    return "";
  return std::to_string(problem->place.line) + ":" + std::to_string(problem->place.column) + ": " + problem->message;
}

TEST(ProfileTest, ReadsNamesAndNumbersOfJson) {
  std::vector<ProfileEntry> entries;
  ASSERT_FALSE(readProfile(" {\"/a/\\u004datMul\": 12500,\n\t\"b\\\"{,:\" :3.5e2 , \"\": 0}\n", entries));
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries[0].node, "/a/MatMul");
  EXPECT_EQ(entries[0].ns, 12500);
  EXPECT_EQ(entries[0].place.column, 3u);
  EXPECT_EQ(entries[1].node, "b\"{,:");
  EXPECT_EQ(entries[1].ns, 350);
  EXPECT_EQ(entries[1].place.line, 2u);
  EXPECT_EQ(entries[1].place.column, 2u);
  entries.clear();
  EXPECT_FALSE(readProfile("{}", entries));
  EXPECT_TRUE(entries.empty());
}

TEST(ProfileTest, SaysWhereItIsWrong) {
  const std::pair<const char *, const char *> cases[] = {
      {"", "1:1: expected an object of nodes and their nanoseconds"},
      {"[1]", "1:1: expected an object of nodes and their nanoseconds"},
      {"{", "1:2: expected the name of a node, in double quotes"},
      {"{a: 1}", "1:2: expected the name of a node, in double quotes"},
      {"{\"a\" 1}", "1:6: expected ':' and nanoseconds"},
      {"{\"a\": 1", "1:8: expected ',' or '}'"},
      {"{\"a\": 1,}", "1:9: expected the name of a node, in double quotes"},
      {"{\"a\": 1} x", "1:10: nothing may come after the object"},
      {"{\"a\": 1,\n \"b\": -2}", "2:7: expected nanoseconds, a number from 0 to 1e12, got '-2'"},
      {"{\"a\": \"1\"}", "1:7: expected nanoseconds, a number from 0 to 1e12, got '\"1\"'"},
      {"{\"a\": {\"b\": 1}}", "1:7: expected nanoseconds, a number from 0 to 1e12, got '{\"b\":'"},
      {"{\"a\": 01}", "1:7: expected nanoseconds, a number from 0 to 1e12, got '01'"},
      {"{\"a\": 1e999}", "1:7: expected nanoseconds, a number from 0 to 1e12, got '1e999'"},
      {"{\"a\": 1e12,\n \"b\": 1.1e12}", "2:7: expected nanoseconds, a number from 0 to 1e12, got '1.1e12'"},
      {"{\"a\": 1,\n\n  \"a\": 2}", "3:3: node 'a' is given twice"},
      {"{\"a\n\": 1}", "1:2: a name ends with '\"' on its line, and has no other control characters than escaped ones"},
      {"{\"a", "1:2: a name ends with '\"' on its line, and has no other control characters than escaped ones"},
  };
  for (auto [text, problem] : cases)
    EXPECT_EQ(getProblem(text), problem) << text;
}

TEST(ProfileTest, BearsAnyBytes) {
  std::mt19937 random(7);
  int good = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text = "{\"a\": 1, \"b\\n\": 2.5}";
    for (size_t count = 1 + random() % 2; count-- > 0;)
      text[random() % text.size()] = "{}\",:\\ 0-e\n\xff"[random() % 12];
    good += getProblem(text).empty();
  }
  EXPECT_GT(good, 100);
  EXPECT_LT(good, 19000);
}
