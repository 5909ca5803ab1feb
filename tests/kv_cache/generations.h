// SPDX-License-Identifier: Apache-2.0
//
// Generations of a small model, from options as a user writes them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "chapter/options.h"
#include "choose.h"
#include "generate.h"
#include "profiler/record_function.h"

// `words` are names and values; --cuda-graph is a name alone.
inline chapter::Options options_of(const std::vector<std::string>& words) {
  std::map<std::string, std::string> values{
      {"--batch", "3"},     {"--heads", "4"},    {"--kv-heads", "2"}, {"--seq", "37"},
      {"--head-dim", "16"}, {"--device", "cpu"}, {"--tokens", "20"}};
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string& value = values[words[i]];
    value = words[i] == "--cuda-graph" ? "" : words.at(++i);
  }
  std::vector<const char*> argv{"06_kv_cache"};
  for (const auto& [name, value] : values) {
    argv.push_back(name.c_str());
    if (!value.empty()) argv.push_back(value.c_str());
  }
  chapter::Info info{.name = "06_kv_cache", .variant = "test", .summary = ""};
  info.extra_options = kv::extra_options();
  info.why_impossible = kv::why_impossible;
  return chapter::parse_options(static_cast<int>(argv.size()), argv.data(), info);
}

// As the chapter's.
inline void generate(kv::Generation& g, const kv::See& see) {
  at::Tensor x;
  {
    const prof::record_function phase("prefill");
    x = g.prefill();
  }
  see(x);
  for (std::int64_t token = 0; token < g.tokens(); ++token) {
    {
      const prof::record_function phase("decode");
      x = g.decode(x);
    }
    see(x);
  }
  g.end();
}
