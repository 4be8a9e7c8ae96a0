#include "cleave/Plan/NamePattern.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/GlobPattern.h"
#include <chrono>
#include <gtest/gtest.h>
#include <random>

using namespace cleave;
using namespace cleave::spmd;
using llvm::StringRef;

namespace {

NamePattern makePattern(StringRef text) { return llvm::cantFail(NamePattern::create(text)); }

std::string getError(StringRef text) { return llvm::toString(NamePattern::create(text).takeError()); }

std::string draw(std::mt19937 &random, StringRef letters, size_t most) {
  std::string text;
  for (size_t length = 1 + random() % most; text.size() < length;)
    text += letters[random() % letters.size()];
  return text;
}

// LLVM's own matching is the reference.
TEST(NamePattern, MatchesGlobsAsLlvmDoes) {
  std::mt19937 random(1);
  unsigned tried = 0, matched = 0;
  for (unsigned i = 0; i < 30000; ++i) {
    std::string text = draw(random, "aab.*?[]^!-{,}\\", 9), error;
    // A lone `{a}` is a thing of ours.
    if (StringRef(text).contains('[') && StringRef(text).contains('{'))
      continue;
    llvm::Expected<llvm::GlobPattern> glob = llvm::GlobPattern::create(text, 1024);
    if (!glob) {
      llvm::consumeError(glob.takeError());
      continue;
    }
    llvm::Expected<NamePattern> pattern = NamePattern::create(text);
    ASSERT_TRUE(bool(pattern)) << text << ": " << llvm::toString(pattern.takeError());
    for (unsigned j = 0; j < 20; ++j) {
      std::string name = draw(random, "ab.-^!*,\n", 5);
      ++tried;
      matched += glob->match(name);
      ASSERT_EQ(pattern->matches(name), glob->match(name) || name == text) << "'" << text << "' on '" << name << "'";
    }
  }
  EXPECT_GT(tried, 100000u);
  EXPECT_GT(matched, 1000u);
}

// An expression is one, whatever is pasted around it.
TEST(NamePattern, TakesExpressionsWhole) {
  EXPECT_TRUE(makePattern("re:a|bc").matches("bc"));
  EXPECT_FALSE(makePattern("re:a|bc").matches("ac"));
  EXPECT_FALSE(makePattern("re:a|bc").matches("abc"));
  EXPECT_TRUE(makePattern("re:(?i)QUERY").matches("query"));
  EXPECT_TRUE(makePattern("re:.").matches("\n"));
  EXPECT_TRUE(makePattern("re:[[:alpha:]]+").matches("abc"));
  EXPECT_EQ(getError("re:a)|(b"), "bad regular expression 'a)|(b': unexpected ): a)|(b");
  EXPECT_EQ(getError("re:(a)\\1"), "bad regular expression '(a)\\1': invalid escape sequence: \\1");
  EXPECT_NE(getError("re:(a{255}){255}").find("{255}"), std::string::npos);
}

TEST(NamePattern, TakesLinearTime) {
  std::string letters(200000, 'a'), stars;
  for (unsigned i = 0; i < 60; ++i)
    stars += "*a";
  auto start = std::chrono::steady_clock::now();
  EXPECT_FALSE(makePattern(stars + "*b").matches(letters));
  EXPECT_FALSE(makePattern("re:(a*)*(a|aa)*(a|a)*b").matches(letters));
  EXPECT_FALSE(makePattern("re:(a?){200}a{200}b").matches(letters));
  std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  EXPECT_LT(time.count(), 2);
}

TEST(NamePattern, KnowsItsAlternatives) {
  auto getTexts = [](StringRef text) {
    std::vector<std::string> texts;
    for (const auto &[alternative, pattern] : makePattern(text).getAlternatives())
      texts.push_back(alternative + ": " + pattern.getText().str());
    return texts;
  };
  EXPECT_EQ(getTexts("*.{query,kez}.w"), (std::vector<std::string>{"query: *.query.w", "kez: *.kez.w"}));
  EXPECT_EQ(getTexts("{a,b}{c,d}"), (std::vector<std::string>{"a: a{c,d}", "b: b{c,d}", "c: {a,b}c", "d: {a,b}d"}));
  EXPECT_EQ(getTexts("a*"), std::vector<std::string>());
  EXPECT_EQ(getTexts("re:{a,b}"), std::vector<std::string>());
}

// With an index or without, the same names in the same order.
TEST(NameIndex, FindsWhatMatches) {
  std::mt19937 random(2);
  std::vector<std::string> texts{"a.*b[0]", "re:abc", "re:abc\\.c"};
  for (unsigned i = 0; i < 500; ++i)
    texts.push_back(draw(random, "abc.", 8));
  std::vector<StringRef> names(texts.begin(), texts.end());
  NameIndex index(names);
  unsigned found = 0;
  for (unsigned i = 0; i < 2000; ++i) {
    std::string text = i % 8    ? draw(random, "aabbcc.*?", 9)
                       : i % 16 ? texts[random() % texts.size()]
                                : "re:" + draw(random, "abc.", 6) + ".*";
    NamePattern pattern = makePattern(text);
    if (i % 5 == 0)
      pattern.exclude(makePattern("*b"));
    std::vector<size_t> want, got;
    for (size_t number = 0; number < names.size(); ++number)
      if (pattern.matches(names[number]) &&
          std::find(names.begin(), names.begin() + long(number), names[number]) == names.begin() + long(number))
        want.push_back(number);
    bool any = index.forEachMatch(pattern, [&](size_t number) {
      if (std::find(names.begin(), names.begin() + long(number), names[number]) == names.begin() + long(number))
        got.push_back(number);
    });
    ASSERT_EQ(got, want) << text;
    EXPECT_EQ(any, !want.empty());
    found += want.size();
  }
  EXPECT_GT(found, 1000u);
  // A name that is the expression lacks what names that match it begin with.
  std::vector<size_t> exact;
  index.forEachMatch(makePattern("re:abc\\.c"), [&](size_t number) { exact.push_back(number); });
  EXPECT_EQ(exact, std::vector<size_t>{2});
}

TEST(SuggestPatterns, TriesStars) {
  std::vector<StringRef> names{"/l.0/query/MatMul", "/l.1/query/MatMul", "input_ids"};
  EXPECT_EQ(suggestPatterns("query", names), "; try '*query*', which matches '/l.0/query/MatMul' and 1 more");
  EXPECT_EQ(suggestPatterns("input", names), "; try 'input*', which matches 'input_ids'");
  EXPECT_EQ(suggestPatterns("re:query", names), "; try 're:.*query.*', which matches '/l.0/query/MatMul' and 1 more");
  EXPECT_EQ(suggestPatterns("*quer", names), "; try '*quer*', which matches '/l.0/query/MatMul' and 1 more");
  EXPECT_EQ(suggestPatterns("zzz", names), "");
}

TEST(SuggestNames, TakesLettersForBothCases) {
  EXPECT_EQ(suggestNames("1F1B", {"1f1b", "zb-v"}), "; did you mean '1f1b'?");
  EXPECT_EQ(suggestNames("zbv", {"1f1b", "zb-v"}), "; did you mean 'zb-v'?");
}

} // namespace
