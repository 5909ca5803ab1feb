// SPDX-License-Identifier: Apache-2.0
//
// What a sequence keeps of its past: the key and value of every token in every layer, so that a new
// token computes its own alone. Three ways to keep them, behind one interface.
//
//   const auto cache = kv::make_cache(kv::Kind::paged, shape);
//   cache->take_prompts();                       // a generation begins
//   cache->fill(layer, k, v);                    // of the prompts, k and v [B, Hkv, S, D]
//   cache->make_room(), cache->advance();        // one token more: on the host, then on the device
//   cache->append(layer, k, v);                  // its k and v [B, Hkv, 1, D]
//   cache->clear();                              // and ends
//
// The host knows how long each sequence is, and so does the device: `lengths` is a tensor there.
// All that advance() and append() do is work of the device on tensors that stay where they are
// (concat's do not), so a CUDA graph of them can be replayed.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace kv {

enum class Kind { none, concat, preallocated, paged };  // none: all is computed again
inline constexpr std::array kKinds{Kind::none, Kind::concat, Kind::preallocated, Kind::paged};

// As the command line spells it: "preallocated".
[[nodiscard]] std::string name_of(Kind kind);
[[nodiscard]] std::optional<Kind> kind_of(std::string_view name);

inline constexpr std::int64_t kPageSize = 16;  // tokens: the least that the decode kernel takes

struct CacheShape {
  std::int64_t layers = 1, kv_heads = 1, head_dim = 1;
  std::vector<std::int64_t> prompts;  // tokens of each of the B sequences before the first decode
  std::int64_t capacity = 0;  // tokens that a sequence has room for; pages are for all together
  at::TensorOptions like;     // device and dtype

  [[nodiscard]] std::int64_t batch() const { return static_cast<std::int64_t>(prompts.size()); }
  [[nodiscard]] std::int64_t longest() const;
  [[nodiscard]] bool is_ragged() const;
};

// There is no room for one token more. The program exits 1.
class CacheFull : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A layer's keys and values as the decode kernel takes them (see 04_kernels/decode_op.cpp).
struct Kept {
  at::Tensor k, v;     // [B, Hkv, T, D]; pages: [pages, Hkv, kPageSize, D]
  at::Tensor lengths;  // [B] int32, on the device
  at::Tensor table;    // [B, pages of a sequence] int32; undefined where there are no pages
};

// The same as SDPA takes them.
struct Dense {
  at::Tensor k, v;  // [B, Hkv, T, D]
  at::Tensor mask;  // [B, 1, 1, T] bool, true for the keys of the sequence; undefined: for all
};

struct Usage {
  std::int64_t tokens = 0;  // of all sequences
  std::int64_t slots = 0;   // that tokens have or that nobody else can have
  std::int64_t bytes = 0;   // of all tensors, in use or not
};

class Cache {
 public:
  explicit Cache(CacheShape shape);
  virtual ~Cache() = default;
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

  // Forgets all tokens.
  virtual void clear();
  // Makes room for the prompts, whose tokens come next; the cache is clear.
  virtual void take_prompts();
  virtual void fill(std::int64_t layer, const at::Tensor& k, const at::Tensor& v) = 0;
  // One token more for each sequence; throws CacheFull.
  virtual void make_room();
  virtual void advance();
  virtual void append(std::int64_t layer, const at::Tensor& k, const at::Tensor& v) = 0;
  [[nodiscard]] virtual Kept kept(std::int64_t layer) const = 0;
  [[nodiscard]] virtual Dense dense(std::int64_t layer) const = 0;
  [[nodiscard]] virtual Usage usage() const = 0;

  [[nodiscard]] const CacheShape& shape() const { return shape_; }
  // Tokens of sequence b, as the host counts them.
  [[nodiscard]] std::int64_t length(std::int64_t b) const;
  [[nodiscard]] std::int64_t longest() const { return shape_.longest() + decoded_; }
  [[nodiscard]] std::int64_t tokens() const;

 protected:
  // The mask of Dense where a sequence's keys are the first ones.
  [[nodiscard]] at::Tensor own_keys() const;

  CacheShape shape_;
  std::int64_t decoded_ = 0;  // tokens of each sequence beyond its prompt
  at::Tensor prompts_;        // [B] int32, on the device
  at::Tensor lengths_;        // [B] int32, on the device
};

// Not for Kind::none.
[[nodiscard]] std::unique_ptr<Cache> make_cache(Kind kind, const CacheShape& shape);

}  // namespace kv
