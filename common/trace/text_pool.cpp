// SPDX-License-Identifier: Apache-2.0
#include "trace/text_pool.h"

#include <cstring>

namespace trace {
namespace {

constexpr std::size_t kBlockSize = 1 << 16;

template <typename Word>
Word load(const char* data) {
  Word word;
  std::memcpy(&word, data, sizeof word);
  return word;
}

// Eight bytes at a time, because the reader looks up a name of some 20 bytes for every event.
std::uint32_t hash_of(std::string_view text) {
  constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15;  // 2^64 / golden ratio: spreads all bits
  std::uint64_t hash = text.size() * kOdd;
  const auto mix = [&](std::uint64_t word) {
    hash = (hash ^ word) * kOdd;
    hash ^= hash >> 32;
  };
  const char* data = text.data();
  const std::size_t size = text.size();
  if (size >= 8) {
    for (std::size_t at = 0; at + 8 < size; at += 8) mix(load<std::uint64_t>(data + at));
    mix(load<std::uint64_t>(data + size - 8));  // may overlap the word before
  } else if (size >= 4) {
    mix(std::uint64_t{load<std::uint32_t>(data)} << 32 | load<std::uint32_t>(data + size - 4));
  } else if (size > 0) {
    mix(std::uint64_t{load<std::uint8_t>(data)} << 16 | load<std::uint8_t>(data + size / 2) << 8 |
        load<std::uint8_t>(data + size - 1));
  }
  return static_cast<std::uint32_t>(hash);
}

}  // namespace

TextPool::TextPool() : views_(1), slots_(64) {}

TextId TextPool::add(std::string_view text) {
  if (text.empty()) return 0;
  const std::uint32_t hash = hash_of(text);
  std::size_t slot = slot_of(text, hash);
  if (slots_[slot].id != 0) return slots_[slot].id;
  if (2 * views_.size() >= slots_.size()) {  // at most half full: probes stay short
    grow();
    slot = slot_of(text, hash);
  }
  const auto id = static_cast<TextId>(views_.size());
  views_.push_back(stored(text));
  slots_[slot] = {hash, id};
  return id;
}

TextId TextPool::find(std::string_view text) const {
  return text.empty() ? 0 : slots_[slot_of(text, hash_of(text))].id;
}

// The slot that holds the text, or the free one where it belongs.
std::size_t TextPool::slot_of(std::string_view text, std::uint32_t hash) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = hash & mask;
  while (slots_[slot].id != 0) {
    if (slots_[slot].hash == hash && views_[slots_[slot].id] == text) break;
    slot = (slot + 1) & mask;
  }
  return slot;
}

std::string_view TextPool::stored(std::string_view text) {
  if (text.size() > block_left_) {
    block_left_ = text.size() > kBlockSize / 4 ? text.size() : kBlockSize;
    blocks_.push_back(std::make_unique_for_overwrite<char[]>(block_left_));
    block_next_ = blocks_.back().get();
  }
  char* start = block_next_;
  std::memcpy(start, text.data(), text.size());
  block_next_ += text.size();
  block_left_ -= text.size();
  return {start, text.size()};
}

void TextPool::grow() {
  std::vector<Slot> old(2 * slots_.size());
  old.swap(slots_);
  const std::size_t mask = slots_.size() - 1;
  for (const Slot& moved : old) {
    if (moved.id == 0) continue;
    std::size_t slot = moved.hash & mask;
    while (slots_[slot].id != 0) slot = (slot + 1) & mask;
    slots_[slot] = moved;
  }
}

}  // namespace trace
