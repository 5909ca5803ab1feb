// SPDX-License-Identifier: Apache-2.0
#include "explain/execution_trace.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "trace/input.h"
#include "trace/reader.h"

namespace explain {
namespace {

namespace dom = simdjson::dom;

using Elements = std::vector<dom::element>;

// What a node says about one side of the call: lists that run in parallel, one element an argument.
struct Side {
  Elements values, shapes, types, strides;
};

// Of a list; none where it is something else.
Elements elements(dom::element json) {
  dom::array array;
  if (json.get(array) != simdjson::SUCCESS) return {};
  return {array.begin(), array.end()};
}

const dom::element* at(const Elements& list, std::size_t place) {
  return place < list.size() ? &list[place] : nullptr;
}

// "c10::BFloat16" as it is said.
std::string dtype_name(std::string_view word) {
  using Pair = std::pair<std::string_view, std::string_view>;
  constexpr std::array<Pair, 11> kNames = {{{"float", "fp32"},
                                            {"double", "fp64"},
                                            {"c10::Half", "fp16"},
                                            {"c10::BFloat16", "bf16"},
                                            {"bool", "bool"},
                                            {"long int", "int64"},
                                            {"long", "int64"},
                                            {"int", "int32"},
                                            {"short int", "int16"},
                                            {"signed char", "int8"},
                                            {"unsigned char", "uint8"}}};
  for (const auto& [torch, name] : kNames)
    if (word == torch) return std::string(name);
  constexpr std::string_view kNamespace = "c10::";
  if (word.starts_with(kNamespace)) word.remove_prefix(kNamespace.size());
  return std::string(word);
}

std::vector<std::int64_t> integers(dom::element json) {
  std::vector<std::int64_t> result;
  for (const dom::element element : elements(json)) {
    std::int64_t number = 0;
    if (element.get(number) != simdjson::SUCCESS) return {};
    result.push_back(number);
  }
  return result;
}

// The dtypes in "GenericList[Tensor(float),None,Tensor(c10::Half)]", one after the other.
class Dtypes {
 public:
  explicit Dtypes(std::string_view types) : rest_(types) {}

  std::string next() {
    constexpr std::string_view kTensor = "Tensor(";
    const std::size_t begin = rest_.find(kTensor);
    if (begin == std::string_view::npos) {
      rest_ = {};
      return "";
    }
    rest_.remove_prefix(begin + kTensor.size());
    const std::string_view word = rest_.substr(0, rest_.find(')'));
    rest_.remove_prefix(word.size());
    return dtype_name(word);
  }

 private:
  std::string_view rest_;
};

// [tensor, storage, offset, elements, item size, device]: nothing else ends with a device's name.
bool read_tensor(const Elements& list, TensorUse& use, std::int64_t& count) {
  std::array<std::int64_t, 5> numbers{};
  if (list.size() != numbers.size() + 1 || !list.back().is_string()) return false;
  for (std::size_t i = 0; i < numbers.size(); ++i)
    if (list[i].get(numbers[i]) != simdjson::SUCCESS) return false;
  use.tensor = numbers[0];
  use.storage = numbers[1];
  count = numbers[3];
  use.item_size = numbers[4];
  return true;
}

// A tensor, or the tensors of a list; simdjson has bounded how deep lists are nested.
void add_tensors(dom::element value, const dom::element* shape, const dom::element* stride,
                 Dtypes& dtypes, std::size_t argument, std::vector<TensorUse>& result) {
  const Elements list = elements(value);
  TensorUse use{.argument = argument};
  std::int64_t count = 0;
  if (!read_tensor(list, use, count)) {
    const Elements shapes = shape ? elements(*shape) : Elements();
    const Elements strides = stride ? elements(*stride) : Elements();
    for (std::size_t i = 0; i < list.size(); ++i)
      add_tensors(list[i], at(shapes, i), at(strides, i), dtypes, argument, result);
    return;
  }
  use.dtype = dtypes.next();
  if (shape) use.shape = integers(*shape);
  if (stride) use.strides = integers(*stride);
  const bool is_undefined = use.storage == 0 && count == 0;
  if (!is_undefined) result.push_back(std::move(use));
}

std::vector<TensorUse> tensors_of(const Side& side) {
  std::vector<TensorUse> result;
  for (std::size_t i = 0; i < side.values.size(); ++i) {
    std::string_view types;
    if (const auto* json = at(side.types, i); json && json->get(types) != simdjson::SUCCESS) {
      types = {};
    }
    Dtypes dtypes(types);
    add_tensors(side.values[i], at(side.shapes, i), at(side.strides, i), dtypes, i, result);
  }
  return result;
}

class NodeReader {
 public:
  explicit NodeReader(dom::object object) {
    for (const dom::key_value_pair field : object) read_field(field.key, field.value);
  }

  // False where it has no id or no name.
  [[nodiscard]] bool read(ExecutionNode& node) const {
    if (!id_ || name_.empty()) return false;
    constexpr std::int64_t kUserScope = 7;
    node = {.id = *id_,
            .parent = parent_,
            .name = std::string(name_),
            .schema = std::string(schema_),
            .is_annotation = scope_ == kUserScope,
            .returns_anything = !outputs_.values.empty(),
            .inputs = tensors_of(inputs_),
            .outputs = tensors_of(outputs_)};
    return true;
  }

 private:
  void read_field(std::string_view key, dom::element value) {
    std::int64_t number = 0;
    if (key == "id" && value.get(number) == simdjson::SUCCESS) id_ = number;
    if (key == "name" && value.get(name_) != simdjson::SUCCESS) name_ = {};
    if ((key == "ctrl_deps" || key == "parent") && value.get(number) == simdjson::SUCCESS) {
      parent_ = number;
    }
    if (key == "attrs") read_attributes(value);
    read_attribute(key, value);
    if (key.starts_with("input")) read_side(key.substr(5), value, inputs_);
    if (key.starts_with("output")) read_side(key.substr(6), value, outputs_);
  }

  // Older schemas have them in the node itself.
  void read_attribute(std::string_view key, dom::element value) {
    std::int64_t number = 0;
    if (key == "scope" && value.get(number) == simdjson::SUCCESS) scope_ = number;
    if (key == "op_schema" && value.get(schema_) != simdjson::SUCCESS) schema_ = {};
  }

  void read_attributes(dom::element json) {
    for (const dom::element attribute : elements(json)) {
      std::string_view name;
      dom::element value;
      if (attribute["name"].get(name) == simdjson::SUCCESS &&
          attribute["value"].get(value) == simdjson::SUCCESS) {
        read_attribute(name, value);
      }
    }
  }

  // {"values": [], "shapes": [], ...}, or in older schemas "inputs": [], "input_shapes": [], ...
  static void read_side(std::string_view key, dom::element json, Side& side) {
    dom::object parts;
    if (key == "s" && json.get(parts) == simdjson::SUCCESS) {
      for (const dom::key_value_pair part : parts) read_list(part.key, part.value, side);
    } else if (key == "s") {
      read_list("values", json, side);
    } else if (key.starts_with('_')) {
      read_list(key.substr(1), json, side);
    }
  }

  static void read_list(std::string_view key, dom::element json, Side& side) {
    if (key == "values") side.values = elements(json);
    if (key == "shapes") side.shapes = elements(json);
    if (key == "types") side.types = elements(json);
    if (key == "strides") side.strides = elements(json);
  }

  std::optional<std::int64_t> id_;
  std::int64_t parent_ = 0, scope_ = 0;
  std::string_view name_, schema_;
  Side inputs_, outputs_;
};

[[noreturn]] void fail(const std::string& name, std::string_view why, std::string_view remedy) {
  throw trace::ReadError(fmt::format("{} {}: {}", name, why, remedy));
}

constexpr std::string_view kHow =
    "run a chapter with --graph, or record with torch's ExecutionTraceObserver";

dom::array nodes_of(dom::parser& parser, const std::string& text, const std::string& name) {
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) fail(name, "is empty", kHow);
  dom::element root;
  switch (parser.parse(text).get(root)) {
    case simdjson::SUCCESS:
      break;
    case simdjson::DEPTH_ERROR:
      fail(name, "is nested 1024 levels deep", "no execution trace is; record it again");
    case simdjson::CAPACITY:
    case simdjson::MEMALLOC:
      fail(name, "is too large", "record one step alone");
    default:
      fail(name, "is no whole JSON",
           "an execution trace gets its end when the observer is removed; record it again");
  }
  dom::element ignored;
  if (root["traceEvents"].get(ignored) == simdjson::SUCCESS) {
    fail(name, "is a trace, not an execution trace", kHow);
  }
  dom::array nodes;
  if (root["nodes"].get(nodes) != simdjson::SUCCESS) fail(name, "is no execution trace", kHow);
  return nodes;
}

ExecutionTrace parse(const std::string& text, const std::string& name) {
  dom::parser parser;
  ExecutionTrace trace;
  for (const dom::element json : nodes_of(parser, text, name)) {
    dom::object object;
    ExecutionNode node;
    if (json.get(object) == simdjson::SUCCESS && NodeReader(object).read(node)) {
      trace.nodes.push_back(std::move(node));
    } else {
      ++trace.dropped;
    }
  }
  if (trace.nodes.empty()) fail(name, "holds no node of an execution trace", kHow);
  std::stable_sort(trace.nodes.begin(), trace.nodes.end(),
                   [](const auto& a, const auto& b) { return a.id < b.id; });
  const auto twice = std::unique(trace.nodes.begin(), trace.nodes.end(),
                                 [](const auto& a, const auto& b) { return a.id == b.id; });
  trace.dropped += static_cast<std::size_t>(trace.nodes.end() - twice);
  trace.nodes.erase(twice, trace.nodes.end());
  return trace;
}

}  // namespace

std::int64_t TensorUse::bytes() const {
  auto product = static_cast<std::uint64_t>(item_size);
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const bool is_repeated = strides.size() == shape.size() && strides[i] == 0 && shape[i] > 1;
    if (!is_repeated) product *= static_cast<std::uint64_t>(shape[i]);
  }
  return static_cast<std::int64_t>(product);
}

ExecutionTrace read_execution_trace(const std::filesystem::path& path) {
  trace::Input input = trace::Input::open(path);
  return parse(trace::read_whole(input), input.name());
}

ExecutionTrace parse_execution_trace(std::string_view text) {
  trace::Input input(text);
  return parse(trace::read_whole(input), input.name());
}

}  // namespace explain
