// SPDX-License-Identifier: Apache-2.0
//
// From execution traces of our own to graphs: who wrote what a reader reads, and how it is drawn.
#include "explain/op_graph.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "explain/execution_trace.h"
#include "explain/op_graph_layout.h"
#include "explain/op_graph_svg.h"
#include "explain/op_graph_text.h"
#include "trace/reader.h"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

// A tensor of fp32 as the observer writes it: two ids, and a shape.
struct Tensor {
  int tensor = 0, storage = 0;
  std::vector<int> shape{4, 8};
  std::string dtype = "float";
};

std::string value_of(const Tensor& tensor) {
  return fmt::format(R"([{},{},0,{},4,"cpu"])", tensor.tensor, tensor.storage, 32);
}

// One side of a call: the lists that run in parallel. Numbers come behind the tensors.
std::string side_of(const std::vector<Tensor>& tensors, bool has_number = false) {
  std::vector<std::string> values, shapes, types;
  for (const Tensor& tensor : tensors) {
    values.push_back(value_of(tensor));
    shapes.push_back(fmt::format("[{}]", fmt::join(tensor.shape, ",")));
    types.push_back(fmt::format("\"Tensor({})\"", tensor.dtype));
  }
  if (has_number) {
    values.emplace_back("0.5");
    shapes.emplace_back("[]");
    types.emplace_back("\"Double\"");
  }
  return fmt::format(R"({{"values":[{}],"shapes":[{}],"types":[{}]}})", fmt::join(values, ","),
                     fmt::join(shapes, ","), fmt::join(types, ","));
}

constexpr int kAnnotation = 7;

std::string node(int id, int parent, const std::string& name, const std::string& inputs,
                 const std::string& outputs, const std::string& schema = "", int scope = 0) {
  return fmt::format(R"({{"id":{},"name":"{}","ctrl_deps":{},"inputs":{},"outputs":{},"attrs":[)"
                     R"({{"name":"scope","type":"uint64","value":{}}},)"
                     R"({{"name":"op_schema","type":"string","value":"{}"}}]}})",
                     id, name, parent, inputs, outputs, scope, schema);
}

std::string op(int id, int parent, const std::string& name, const std::vector<Tensor>& inputs,
               const std::vector<Tensor>& outputs, const std::string& schema = "") {
  return node(id, parent, name, side_of(inputs), side_of(outputs), schema);
}

std::string annotation(int id, int parent, const std::string& name) {
  return node(id, parent, name, side_of({}), side_of({}), "", kAnnotation);
}

std::string file_of(const std::vector<std::string>& nodes) {
  return fmt::format(R"({{"schema":"1.1.1-chakra.0.0.4","nodes":[{}],"finish_ts":1}})",
                     fmt::join(nodes, ","));
}

explain::OpGraph graph_of(const std::vector<std::string>& nodes, const std::string& label = "") {
  return explain::op_graph(explain::parse_execution_trace(file_of(nodes)), {.label = label});
}

// Each edge as "from -> to: tensor", sorted.
std::vector<std::string> edges_of(const explain::OpGraph& graph) {
  std::vector<std::string> edges;
  for (const auto& edge : graph.edges)
    edges.push_back(fmt::format("{} -> {}: {}", graph.nodes[edge.from].name,
                                graph.nodes[edge.to].name, edge.tensor));
  std::sort(edges.begin(), edges.end());
  return edges;
}

using Edges = std::vector<std::string>;

const std::string kTensor = "[4, 8] fp32 128 B";
const std::string kCopySchema =
    "aten::copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)";

const explain::OpGraph::Node& node_named(const explain::OpGraph& graph, std::string_view name) {
  const auto found = std::find_if(graph.nodes.begin(), graph.nodes.end(),
                                  [&](const auto& node) { return node.name == name; });
  REQUIRE(found != graph.nodes.end());
  return *found;
}

void check_refused(const std::string& text, const std::string& why) {
  CAPTURE(text.substr(0, 200));
  CHECK_THROWS_MATCHES(explain::parse_execution_trace(text), trace::ReadError,
                       MessageMatches(ContainsSubstring(why)));
}

}  // namespace

TEST_CASE("Each reader gets what was written last, however often ids are reused") {
  // exp's result dies; neg's takes both of its ids. sin still reads the input.
  const auto graph = graph_of({op(2, 1, "aten::exp", {{5, 6}}, {{7, 8}}),
                               op(3, 1, "aten::sum", {{7, 8}}, {{9, 10, {}}}),
                               op(4, 1, "aten::neg", {{9, 10, {}}}, {{7, 8}}),
                               op(5, 1, "aten::add", {{7, 8}, {5, 6}}, {{11, 12}})});
  CHECK(edges_of(graph) ==
        Edges{"aten::add -> output: " + kTensor, "aten::exp -> aten::sum: " + kTensor,
              "aten::neg -> aten::add: " + kTensor, "aten::sum -> aten::neg: [] fp32 4 B",
              "input -> aten::add: " + kTensor, "input -> aten::exp: " + kTensor});
}

TEST_CASE("Views vanish, and an edge has the shape that its reader saw") {
  const auto graph = graph_of({op(2, 1, "aten::exp", {{5, 6}}, {{7, 8}}),
                               op(3, 1, "aten::transpose", {{7, 8}}, {{9, 8, {8, 4}}}),
                               op(5, 3, "aten::as_strided", {{7, 8}}, {{9, 8, {8, 4}}}),
                               op(6, 1, "aten::neg", {{9, 8, {8, 4}}}, {{7, 10, {8, 4}}}),
                               op(7, 1, "aten::view", {{7, 10, {8, 4}}}, {{11, 10, {32}}})});
  CHECK(edges_of(graph) == Edges{"aten::exp -> aten::neg: [8, 4] fp32 128 B",
                                 "aten::neg -> output: [32] fp32 128 B",
                                 "input -> aten::exp: " + kTensor});
}

TEST_CASE("An op in place makes a new version, whether its schema or its name says so") {
  const std::string schema = GENERATE(
      "", "aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)");
  const auto graph = graph_of({op(2, 1, "aten::exp", {{5, 6}}, {{7, 8}}),
                               op(3, 1, "aten::add_", {{7, 8}, {5, 6}}, {{7, 8}}, schema),
                               op(4, 1, "aten::neg", {{7, 8}}, {{9, 10}})});
  CHECK(edges_of(graph) ==
        Edges{"aten::add_ -> aten::neg: " + kTensor, "aten::exp -> aten::add_: " + kTensor,
              "aten::neg -> output: " + kTensor, "input -> aten::add_: " + kTensor,
              "input -> aten::exp: " + kTensor});
  CHECK(node_named(graph, "aten::add_").in_place);
  CHECK_FALSE(node_named(graph, "aten::neg").in_place);
  const auto operation = graph_of({op(2, 1, "aten::__and__", {{5, 6}}, {{7, 8}})});
  CHECK_FALSE(node_named(operation, "aten::__and__").in_place);
}

TEST_CASE("The schema says which argument is written, not its place in front") {
  const auto graph =
      graph_of({op(2, 1, "aten::empty", {}, {{7, 8}}),
                op(3, 1, "aten::mm", {{1, 2}, {3, 4}, {7, 8}}, {{7, 8}},
                   "aten::mm.out(Tensor self, Tensor mat2, *, Tensor(a!) out) -> Tensor(a!)"),
                op(4, 1, "aten::neg", {{7, 8}}, {{9, 10}})});
  // What empty returned holds nothing yet: no edge, and not in place.
  CHECK(edges_of(graph) ==
        Edges{"aten::mm -> aten::neg: " + kTensor, "aten::neg -> output: " + kTensor,
              "input 1 -> aten::mm: " + kTensor, "input 2 -> aten::mm: " + kTensor});
  CHECK_FALSE(node_named(graph, "aten::mm").in_place);
}

TEST_CASE("Ops that only call others are where the others are; copies of its own are an op's") {
  const auto graph =
      graph_of({annotation(2, 1, "attn_fwd"), op(3, 2, "aten::masked_fill", {{5, 6}}, {{9, 10}}),
                op(4, 3, "aten::clone", {{5, 6}}, {{9, 10}}),
                op(5, 4, "aten::empty_like", {{5, 6}}, {{9, 10}}),
                op(6, 4, "aten::copy_", {{9, 10}, {5, 6}}, {{9, 10}}, kCopySchema),
                op(7, 3, "aten::masked_fill_", {{9, 10}}, {{9, 10}})});
  CHECK(graph.title == "attn_fwd");
  CHECK(edges_of(graph) == Edges{"aten::clone -> aten::masked_fill_: " + kTensor,
                                 "aten::masked_fill_ -> output: " + kTensor,
                                 "input -> aten::clone: " + kTensor});
  const auto& clone = node_named(graph, "aten::clone");
  CHECK(clone.path == "aten::masked_fill");
  CHECK(clone.with == "aten::copy_");
  CHECK(clone.is_copy);
  CHECK(explain::node_notes(clone) ==
        std::vector<std::string>{"in aten::masked_fill", "with aten::copy_"});
  CHECK(clone.call == 1);
  CHECK(node_named(graph, "aten::masked_fill_").call == 2);
}

TEST_CASE("An op that calls others and computes, too, is a node beside them") {
  // The extension takes exp of its input, and a kernel of its own makes the result of it.
  const auto graph = graph_of(
      {op(2, 1, "mine::layer", {{5, 6}}, {{9, 10}}), op(3, 2, "aten::exp", {{5, 6}}, {{7, 8}}),
       op(4, 2, "aten::empty", {}, {{9, 10}}), op(5, 1, "aten::neg", {{9, 10}}, {{11, 12}})});
  CHECK(edges_of(graph) ==
        Edges{"aten::exp -> output 1: " + kTensor, "aten::neg -> output 2: " + kTensor,
              "input -> aten::exp: " + kTensor, "input -> mine::layer: " + kTensor,
              "mine::layer -> aten::neg: " + kTensor});
}

TEST_CASE("Whether an op that calls others made its result is told by who wrote it, and when") {
  // The result's memory was exp's, which is dead: nothing below the layer wrote it, so it did.
  const auto reused = graph_of(
      {op(2, 1, "aten::exp", {{5, 6}}, {{7, 8}}), op(3, 1, "aten::sum", {{7, 8}}, {{9, 10, {}}}),
       op(4, 1, "mine::layer", {{5, 6}}, {{7, 8}}), op(5, 4, "aten::sin", {{5, 6}}, {{11, 12}}),
       op(6, 1, "aten::neg", {{7, 8}}, {{13, 14}})});
  CHECK(node_named(reused, "mine::layer").call == 3);
  const Edges edges = edges_of(reused);
  CHECK(std::count(edges.begin(), edges.end(), "mine::layer -> aten::neg: " + kTensor) == 1);
  // Here sin wrote the one result, and the other one is the input.
  const auto passed_on = graph_of({op(2, 1, "mine::layer", {{5, 6}}, {{7, 8}, {5, 6}}),
                                   op(3, 2, "aten::sin", {{5, 6}}, {{7, 8}})});
  CHECK(edges_of(passed_on) ==
        Edges{"aten::sin -> output: " + kTensor, "input -> aten::sin: " + kTensor});
}

TEST_CASE("Tensors in lists, undefined ones, and numbers that an op returns") {
  const std::string list =
      fmt::format(R"({{"values":[[{},"<None>",{}],1],"shapes":[[[4,8],[],[2,8]],[]],)"
                  R"("types":["GenericList[Tensor(float),None,Tensor(c10::Half)]","Int"]}})",
                  value_of({5, 6}), value_of({7, 8}));
  const auto graph = graph_of(
      {node(2, 1, "aten::cat", list, side_of({{9, 10, {6, 8}}})),
       node(3, 1, "aten::_local_scalar_dense", side_of({{9, 10, {6, 8}}}), side_of({}, true)),
       node(
           4, 1, "aten::add", side_of({{9, 10, {6, 8}}}, true),
           R"({"values":[[20,0,0,0,0,"cpu"],[11,12,0,8,4,"cpu"]],"shapes":[[0],[8]],"types":[]})")});
  CHECK(edges_of(graph) == Edges{"aten::add -> output: [8] 32 B",
                                 "aten::cat -> aten::_local_scalar_dense: [6, 8] fp32 192 B",
                                 "aten::cat -> aten::add: [6, 8] fp32 192 B",
                                 "input 1 -> aten::cat: [4, 8] fp32 128 B",
                                 "input 2 -> aten::cat: [2, 8] fp16 64 B"});
}

TEST_CASE("What a broadcast repeats is counted once") {
  const std::string expanded =
      R"-({"values":[[5,6,0,32,4,"cpu"]],"shapes":[[4,8]],"types":["Tensor(float)"],"strides":[[0,1]]})-";
  const auto graph = graph_of({node(2, 1, "aten::exp", expanded, side_of({{7, 8}}))});
  CHECK(edges_of(graph)[1] == "input -> aten::exp: [4, 8] fp32 32 B");
}

TEST_CASE("Spans of the backward pass, and other records without results, are no ops") {
  const auto graph =
      graph_of({op(2, 1, "autograd::engine::evaluate_function: MulBackward0", {}, {}),
                op(3, 2, "MulBackward0", {{5, 6}}, {}), op(4, 3, "aten::mul", {{5, 6}}, {{7, 8}}),
                op(5, 1, "torch::autograd::AccumulateGrad", {{7, 8}}, {}),
                op(6, 5, "detach", {{7, 8}}, {})});
  CHECK(edges_of(graph) ==
        Edges{"aten::mul -> output: " + kTensor, "input -> aten::mul: " + kTensor});
  CHECK(node_named(graph, "aten::mul").path == "MulBackward0");
}

TEST_CASE("The flat schema of PyTorch 2.0 gives the same graph") {
  const std::string text = R"-({"schema":"1.0.1","nodes":[
    {"name":"aten::exp","id":2,"rf_id":1,"parent":1,"scope":0,"op_schema":"",
     "inputs":[[5,6,0,32,4,"cpu"],1],"input_shapes":[[4,8],[]],"input_types":["Tensor(float)","Int"],
     "outputs":[[7,8,0,32,4,"cpu"]],"output_shapes":[[4,8]],"output_types":["Tensor(float)"]},
    {"name":"aten::add_","id":3,"rf_id":2,"parent":1,"scope":0,
     "op_schema":"aten::add_(Tensor(a!) self) -> Tensor(a!)",
     "inputs":[[7,8,0,32,4,"cpu"]],"input_shapes":[[4,8]],"input_types":["Tensor(float)"],
     "outputs":[[7,8,0,32,4,"cpu"]],"output_shapes":[[4,8]],"output_types":["Tensor(float)"]}]})-";
  const auto graph = explain::op_graph(explain::parse_execution_trace(text), {});
  CHECK(edges_of(graph) == Edges{"aten::add_ -> output: " + kTensor,
                                 "aten::exp -> aten::add_: " + kTensor,
                                 "input -> aten::exp: " + kTensor});
  CHECK(node_named(graph, "aten::add_").in_place);
}

TEST_CASE("A label takes one annotation, and says what there is where it has no op") {
  const std::vector<std::string> nodes = {
      annotation(2, 1, "first"), op(3, 2, "aten::exp", {{5, 6}}, {{7, 8}}),
      annotation(4, 1, "second"), op(5, 4, "aten::neg", {{7, 8}}, {{9, 10}}),
      annotation(6, 1, "nothing")};
  CHECK(graph_of(nodes).title.empty());
  const auto second = graph_of(nodes, "second");
  CHECK(second.title == "second");
  CHECK(edges_of(second) ==
        Edges{"aten::neg -> output: " + kTensor, "input -> aten::neg: " + kTensor});
  for (const char* label : {"nothing", "third\x1b[2J"}) {
    CHECK_THROWS_MATCHES(graph_of(nodes, label), explain::RangeError,
                         MessageMatches(ContainsSubstring("--label takes first, second") &&
                                        !ContainsSubstring("\x1b")));
  }
}

TEST_CASE("Children first, as the observer writes, or sorted by id: the same graph") {
  std::vector<std::string> nodes = {op(2, 1, "aten::linear", {{5, 6}}, {{9, 10}}),
                                    op(3, 2, "aten::mm", {{5, 6}}, {{7, 8}}),
                                    op(4, 2, "aten::relu", {{7, 8}}, {{9, 10}})};
  const std::string dot = explain::op_graph_dot(graph_of(nodes));
  std::rotate(nodes.begin(), nodes.begin() + 1, nodes.end());
  CHECK(explain::op_graph_dot(graph_of(nodes)) == dot);
}

TEST_CASE("A file that is something else is refused in one sentence") {
  check_refused("", "is empty");
  check_refused(" \n", "is empty");
  check_refused(R"({"traceEvents":[]})", "a trace, not an execution trace");
  check_refused(R"({"nodes":7})", "no execution trace");
  check_refused("[1,2]", "no execution trace");
  check_refused("7", "no execution trace");
  check_refused(R"({"nodes":[]})", "no node");
  check_refused(R"({"nodes":[{"id":"a","name":"b"},7,{"id":3},{"name":"c"}]})", "no node");
  const std::string whole = file_of({op(2, 1, "aten::exp", {{5, 6}}, {{7, 8}})});
  check_refused(whole.substr(0, whole.size() - 20), "no whole JSON");
  check_refused(R"({"nodes":)" + std::string(3000, '[') + std::string(3000, ']') + "}",
                "1024 levels");
}

TEST_CASE("No file makes it fail: wrong types, cycles, ids twice, absurd sizes") {
  const std::string text = R"({"nodes":[
    {"id":2,"name":"a","ctrl_deps":3,"inputs":7,"outputs":{"values":{},"shapes":1,"types":[2]},"attrs":5},
    {"id":3,"name":"b","ctrl_deps":2,"inputs":{"values":[[1,2,3,4,5,6],["a"],[[[[]]]],null]},
     "attrs":[{"name":5},{"value":1},6,{"name":"scope","value":"x"},{"name":"op_schema","value":1}]},
    {"id":3,"name":"again","ctrl_deps":"x"},
    {"id":-9223372036854775808,"name":"c","ctrl_deps":9223372036854775807},
    {"id":5,"name":"d_","inputs":{"values":[[1,2,0,9,9223372036854775807,"cpu"],
       [-9223372036854775808,0,0,7,8,""]],"shapes":[[9223372036854775807,-3,12],[1.5]],
       "strides":[[0],[[]]],"types":["Tensor(","Tensor(Tensor("]},
     "outputs":{"values":[[1,2,0,9,-1,"cpu"],"x"]},
     "attrs":[{"name":"op_schema","value":"d_(((,[)](a!),*, ,!"}]},
    {"id":6.5,"name":"e"}]})";
  const explain::ExecutionTrace trace = explain::parse_execution_trace(text);
  CHECK(trace.nodes.size() == 4);
  CHECK(trace.dropped == 2);
  const auto graph = explain::op_graph(trace, {});
  CHECK(node_named(graph, "d_").call == 1);
  CHECK_FALSE(explain::op_graph_dot(graph).empty());
  CHECK_FALSE(explain::op_graph_svg(graph).empty());
}

TEST_CASE("Deep and long files take time in proportion") {
  // A chain of 30,000 calls, below each of them an op; quadratic time would be minutes.
  std::vector<std::string> nodes;
  for (int i = 0; i < 30'000; ++i) {
    nodes.push_back(annotation(2 * i + 2, 2 * i, "level"));
    nodes.push_back(op(2 * i + 3, 2 * i + 2, "aten::exp", {{5, 6}}, {{7, 8}}));
  }
  const auto graph = graph_of(nodes);
  CHECK(graph.nodes.size() == 60'001);
  CHECK_THAT(explain::op_graph_dot(graph), ContainsSubstring("aten::exp #30000"));
  CHECK_THROWS_MATCHES(explain::op_graph_svg(graph), explain::RangeError,
                       MessageMatches(ContainsSubstring("--label with one of level")));
}

TEST_CASE("DOT quotes names") {
  const auto graph = graph_of({op(2, 1, R"(a\"b\\c\u001b\n)", {{5, 6}}, {{7, 8}})});
  CHECK_THAT(explain::op_graph_dot(graph), ContainsSubstring(R"(label="a\"b\\c\\x1b\\x0a #1")"));
}

TEST_CASE("In the SVG nothing lies on anything else") {
  // Three ops in a row, each read by the next and by the last one.
  const std::vector<explain::GraphSize> boxes(6, {80, 34});
  const std::vector<explain::GraphLine> lines = {{0, 1, 60}, {1, 2, 60}, {2, 3, 60}, {0, 3, 90},
                                                 {1, 3, 50}, {4, 3, 70}, {3, 5, 60}};
  const explain::GraphPlaces places = explain::lay_out_graph(boxes, lines);
  struct Rectangle {
    double left, right, top, bottom;
  };
  std::vector<Rectangle> drawn;
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    const auto& [x, y] = places.boxes[i];
    drawn.push_back({x - boxes[i].width / 2, x + boxes[i].width / 2, y, y + boxes[i].height});
  }
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto& [x, y] = places.lines[i].label;
    const double half = lines[i].label_width / 2;
    drawn.push_back({x - half, x + half, y, y + explain::kGraphLabelHeight});
  }
  const auto overlap = [](const Rectangle& a, const Rectangle& b) {
    return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
  };
  for (std::size_t i = 0; i < drawn.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) CHECK_FALSE(overlap(drawn[i], drawn[j]));
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto& down = places.lines[i].down;
    CHECK(down.front().y == places.boxes[lines[i].from].y + boxes[lines[i].from].height);
    CHECK(down.back().y == places.boxes[lines[i].to].y);
    for (std::size_t j = 1; j < down.size(); ++j) {
      CHECK(down[j - 1].y <= down[j].y);
      if (j % 2 == 0) continue;
      const Rectangle inside{down[j].x, down[j].x, down[j - 1].y, down[j].y};
      for (std::size_t k = 0; k < drawn.size(); ++k)
        if (k != boxes.size() + i && k != lines[i].from && k != lines[i].to)
          CHECK_FALSE(overlap(inside, drawn[k]));
    }
  }
  for (const Rectangle& rectangle : drawn) {
    CHECK(rectangle.left >= -0.001);
    CHECK(rectangle.right <= places.width + 0.001);
    CHECK(rectangle.bottom <= places.height + 0.001);
  }
}

TEST_CASE("The SVG stands alone, escapes names and follows the theme") {
  const auto graph = graph_of({annotation(2, 1, "step <1> & \\\"2\\\""),
                               op(3, 2, "aten::exp<\\u001b>", {{5, 6}}, {{7, 8}}),
                               op(4, 2, "aten::clone", {{7, 8}}, {{9, 10}})});
  const std::string svg = explain::op_graph_svg(graph);
  CHECK_THAT(svg,
             ContainsSubstring("step &lt;1&gt; &amp; &quot;2&quot;: 2 ops, 1 input, 1 output"));
  CHECK_THAT(svg, ContainsSubstring(">aten::exp&lt;\\x1b&gt; #1<"));
  CHECK_THAT(svg, ContainsSubstring("<g class=\"b cp\"><title>aten::clone"));
  CHECK_THAT(svg, ContainsSubstring(">[4, 8]<") && ContainsSubstring(">fp32 128 B<"));
  CHECK_THAT(svg, ContainsSubstring("@media (prefers-color-scheme:dark)"));
  CHECK_THAT(svg, !ContainsSubstring("href") && !ContainsSubstring("<script"));
}
