// SPDX-License-Identifier: Apache-2.0
#include "trace/text_pool.h"

#include <catch2/catch_test_macros.hpp>
#include <string>
#include <utility>
#include <vector>

using trace::TextId;
using trace::TextPool;

TEST_CASE("the same text has the same id, the empty text has 0") {
  TextPool pool;
  CHECK(pool.add("") == 0);
  const TextId mul = pool.add("aten::mul");
  CHECK(mul != 0);
  CHECK(pool.add(std::string("aten::") + "mul") == mul);
  CHECK(pool[mul] == "aten::mul");
  CHECK(pool[0].empty());
  CHECK(pool.size() == 2);
}

TEST_CASE("texts that differ in one byte, in length or behind a zero are different") {
  TextPool pool;
  std::vector<std::string> texts;
  for (std::size_t length = 1; length < 40; ++length) {
    texts.push_back(std::string(length, 'a'));
    for (std::size_t place = 0; place < length; ++place) {
      texts.push_back(std::string(length, 'a'));
      texts.back()[place] = 'b';
    }
    texts.push_back(std::string(length, '\0'));
  }
  std::vector<TextId> ids;
  for (const std::string& text : texts) ids.push_back(pool.add(text));
  CHECK(pool.size() == texts.size() + 1);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    CHECK(pool[ids[i]] == texts[i]);
    CHECK(pool.find(texts[i]) == ids[i]);
  }
}

TEST_CASE("find does not add") {
  TextPool pool;
  CHECK(pool.find("softmax") == 0);
  CHECK(pool.size() == 1);
}

TEST_CASE("views stay valid while the pool grows and when it moves") {
  TextPool pool;
  const std::string_view first = pool[pool.add("first")];
  const std::string large(1 << 20, 'x');
  const std::string_view huge = pool[pool.add(large)];
  for (int i = 0; i < 100'000; ++i) pool.add("text " + std::to_string(i));
  const TextPool moved = std::move(pool);
  CHECK(first == "first");
  CHECK(huge == large);
  CHECK(moved.find("first") == 1);
  CHECK(moved.find("text 99999") == 100'002);
}
