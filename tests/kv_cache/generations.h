// SPDX-License-Identifier: Apache-2.0
//
// Generations of a small model, from options as a user writes them.
#pragma once

#include <string>
#include <vector>

#include "chapter/options.h"
#include "choose.h"
#include "generate.h"
#include "profiler/device.h"
#include "profiler/record_function.h"

inline chapter::Options options_of(std::vector<std::string> words,
                                   const prof::Machine& machine = prof::Machine::here()) {
  const std::vector<std::string> small{"06_kv_cache", "--batch",  "3",     "--heads",  "4",
                                       "--kv-heads",  "2",        "--seq", "37",       "--head-dim",
                                       "16",          "--device", "cpu",   "--tokens", "20"};
  std::vector<const char*> argv;
  for (const std::string& word : small) argv.push_back(word.c_str());
  for (const std::string& word : words) argv.push_back(word.c_str());
  chapter::Info info{.name = "06_kv_cache", .variant = "test", .summary = ""};
  info.extra_options = kv::extra_options();
  info.why_impossible = kv::why_impossible;
  return chapter::parse_options(static_cast<int>(argv.size()), argv.data(), info, machine);
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
