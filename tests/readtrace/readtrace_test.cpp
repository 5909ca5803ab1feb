// SPDX-License-Identifier: Apache-2.0
//
// readtrace as a person meets it: what it prints where, and its exit codes. The numbers in the
// table have tests of their own.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;

namespace {

namespace fs = std::filesystem;

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A folder of its own, gone when the test is over.
class Folder {
 public:
  Folder()
      : path_(fs::temp_directory_path() /
              ("readtrace_test_" + std::to_string(::getpid()) + "_" + std::to_string(++count_))) {
    fs::create_directories(path_);
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name, std::ios::binary) << text;
    return path_ / name;
  }
  std::string operator/(const std::string& name) const { return path_ / name; }

 private:
  static inline int count_ = 0;
  fs::path path_;
};

struct Result {
  int exit_code = -1;  // -1 where a signal ended it
  std::string out;
  std::string err;
};

// A shell runs it, so `arguments` may redirect and pipe.
Result readtrace(const std::string& arguments) {
  const Folder folder;
  const std::string command =
      "{ " READTRACE " " + arguments + "; } > " + (folder / "out") + " 2> " + (folder / "err");
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(folder / "out"),
          read_file(folder / "err")};
}

const std::string kNaive = PROF_TEST_DATA "/pytorch/naive.json.gz";

// Two ops, the second with a control sequence in its name.
const std::string kSmall = R"({"traceEvents": [
{"ph": "X", "cat": "cpu_op", "name": "aten::mul", "pid": 1, "tid": 1, "ts": 1.000, "dur": 5.000, "args": {"External id": 1}},
{"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 7.000, "dur": 2.000, "args": {"External id": 2}}
]})";

// An op that makes one tensor of another, as torch's ExecutionTraceObserver writes it.
const std::string kGraph = R"-({"schema": "1.1.1-chakra.0.0.4", "nodes": [
{"id": 2, "name": "fwd", "ctrl_deps": 1, "attrs": [{"name": "scope", "type": "uint64", "value": 7}]},
{"id": 3, "name": "aten::exp", "ctrl_deps": 2,
 "inputs": {"values": [[5, 6, 0, 8, 4, "cpu"]], "shapes": [[2, 4]], "types": ["Tensor(float)"]},
 "outputs": {"values": [[7, 8, 0, 8, 4, "cpu"]], "shapes": [[2, 4]], "types": ["Tensor(float)"]}}]})-";

std::string one_line(const std::string& text) {
  CHECK(text.find('\n') == text.size() - 1);
  return text;
}

}  // namespace

TEST_CASE("table prints what PyTorch printed, and nothing else") {
  const Result result = readtrace("table " + kNaive + " --sort-by cuda_time_total --row-limit 15");
  CHECK(result.exit_code == 0);
  CHECK(result.out == read_file(PROF_TEST_DATA "/pytorch/naive.cuda_time_total.txt"));
  CHECK(result.err.empty());
}

TEST_CASE("the options of table") {
  const Folder folder;
  const std::string trace = folder.write("small.json", kSmall);
  const auto table = [&](const std::string& options) {
    const Result result = readtrace("table " + trace + " " + options);
    CHECK(result.exit_code == 0);
    CHECK(result.err.empty());
    return result.out;
  };
  CHECK_THAT(table(""), ContainsSubstring("    aten::mul        71.43%       5.000us"));
  CHECK_THAT(table("--row-limit 0"), !ContainsSubstring("aten"));
  CHECK_THAT(table("--row-limit -1"), ContainsSubstring("aten::add"));
  CHECK_THAT(table("--sort-by key --row-limit 1"), ContainsSubstring("aten::mul"));
  CHECK_THAT(table("--time-unit ms"), EndsWith("Self CPU time total: 0.007ms\n"));
  CHECK_THAT(table("--header 'Step 3'"), ContainsSubstring("==\nStep 3\n--"));
  CHECK_THAT(table("--header ''"), ContainsSubstring("==\n\n--"));
  CHECK_THAT(table("--top-level-events-only"), ContainsSubstring("only display top-level ops"));
  CHECK_THAT(table("--max-name-column-width 4"), ContainsSubstring("\na...  "));
  CHECK(table("--max-name-column-width none --max-shapes-column-width none") == table(""));
  CHECK(table("--group-by-input-shape") == table(""));  // no shapes were recorded
  CHECK(readtrace("table - < " + trace).out == table(""));
}

TEST_CASE("the formats of table: all rows for programs, and what does not fit is refused") {
  const Result csv = readtrace("table " + kNaive + " --format csv");
  CHECK(csv.exit_code == 0);
  CHECK_THAT(csv.out, StartsWith("name,on_device,"));
  const Result limited = readtrace("table " + kNaive + " --format csv --row-limit 2");
  CHECK(std::count(limited.out.begin(), limited.out.end(), '\n') == 3);
  CHECK(std::count(csv.out.begin(), csv.out.end(), '\n') > 20);
  CHECK_THAT(readtrace("table " + kNaive + " --format json").out, StartsWith("{\n\"device\": "));
  CHECK_THAT(readtrace("table " + kNaive + " --format markdown").out, StartsWith("| Name |"));
  for (const std::string option : {"--time-unit ms", "--header x", "--max-name-column-width 9"}) {
    const Result refused = readtrace("table " + kNaive + " --format csv " + option);
    CHECK(refused.exit_code == 2);
    CHECK(refused.out.empty());
    CHECK_THAT(refused.err, ContainsSubstring("torch and markdown"));
  }
  CHECK(readtrace("table " + kNaive + " --format xml").exit_code == 2);
}

TEST_CASE("table: what it counts otherwise than torch, on request only") {
  const Folder folder;
  const std::string path = folder.write("t.json", R"({"traceEvents": [
{"ph": "X", "cat": "cuda_runtime", "name": "cudaGraphLaunch", "pid": 1, "tid": 1, "ts": 1, "dur": 2, "args": {"correlation": 3}},
{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 4, "dur": 100, "args": {"correlation": 3, "stream": 7}},
{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 14, "dur": 5, "args": {"correlation": 3, "stream": 7}}]})");
  const std::string torch = readtrace("table " + path).out;
  CHECK_THAT(torch, ContainsSubstring("Self CUDA time total: 105.000us"));
  const std::string both =
      readtrace("table " + path + " --clip-overlaps --graph-kernels-to-launch").out;
  CHECK_THAT(both, ContainsSubstring("Self CUDA time total: 15.000us"));
  CHECK(torch.find("0.00%       0.000us") != std::string::npos);
  CHECK(std::count(both.begin(), both.end(), '\n') == std::count(torch.begin(), torch.end(), '\n'));
  CHECK_THAT(both, ContainsSubstring("15.000us      15.000us"));  // the launch's, total and average
}

TEST_CASE("help and version") {
  const Result help = readtrace("--help");
  CHECK(help.exit_code == 0);
  CHECK_THAT(help.out, ContainsSubstring("table") && ContainsSubstring("Exit codes"));
  const Result table = readtrace("table --help");
  CHECK(table.exit_code == 0);
  CHECK_THAT(table.out, ContainsSubstring("--sort-by") && ContainsSubstring("--row-limit"));
  const Result version = readtrace("--version");
  CHECK(version.exit_code == 0);
  CHECK_THAT(version.out, StartsWith("readtrace ") && ContainsSubstring("."));
}

TEST_CASE("bad usage is one line and exit code 2, and nothing is printed") {
  for (const std::string arguments :
       {"", "frobnicate", "table", "table --sort-by", "table %s --sort-by cuda_tiem",
        "table %s --row-limit many", "table %s --time-unit min", "table %s --frobnicate",
        "table %s --max-name-column-width -1", "table %s --max-shapes-column-width wide",
        "table %s --max-name-column-width 5.5", "table %s another.json"}) {
    INFO(arguments);
    std::string command = arguments;
    if (const std::size_t at = command.find("%s"); at != std::string::npos)
      command.replace(at, 2, kNaive);
    const Result result = readtrace(command);
    CHECK(result.exit_code == 2);
    CHECK(result.out.empty());
    CHECK_THAT(one_line(result.err), StartsWith("readtrace: "));
  }
  CHECK_THAT(readtrace("table " + kNaive + " --sort-by cuda_tiem").err,
             ContainsSubstring("self_cpu_time_total"));
  CHECK_THAT(readtrace("table x --sort-by \"$(printf '\\033[2J')\"").err,
             ContainsSubstring("\\x1b[2J"));
}

TEST_CASE("a bad sort key is said before a file is read") {
  CHECK(readtrace("table /no/such/file --sort-by cuda_tiem").exit_code == 2);
}

TEST_CASE("a file that cannot be read is one line and exit code 3") {
  const Folder folder;
  for (const std::string& path : {folder / "missing.json", folder.write("notes.txt", "just text"),
                                  folder.write("empty.json", ""), std::string("/")}) {
    INFO(path);
    const Result result = readtrace("table " + path);
    CHECK(result.exit_code == 3);
    CHECK(result.out.empty());
    CHECK_THAT(one_line(result.err), StartsWith("readtrace: "));
  }
}

TEST_CASE("a file that ends early gives its table, a warning and exit code 4") {
  const Folder folder;
  const std::string cut = kSmall.substr(0, kSmall.size() - 20);
  const Result result = readtrace("table " + folder.write("cut.json", cut));
  CHECK(result.exit_code == 4);
  CHECK_THAT(result.out, ContainsSubstring("aten::mul"));
  CHECK_THAT(result.err, StartsWith("readtrace: "));
}

TEST_CASE("a trace without events is no error") {
  const Folder folder;
  const Result result = readtrace("table " + folder.write("none.json", R"({"traceEvents": []})"));
  CHECK(result.exit_code == 0);
  CHECK(result.out.empty());
  CHECK_THAT(one_line(result.err), ContainsSubstring("none.json"));
}

TEST_CASE("health: 0 where there is no fault, 1 where there is one, 4 where a part is missing") {
  const Folder folder;
  const Result healthy = readtrace("health " PROF_TEST_DATA "/explain/naive.json.gz");
  CHECK(healthy.exit_code == 0);
  CHECK(one_line(healthy.out) == "healthy: 170 events, 21 GPU operations, 3 steps; nothing odd\n");
  const Result note = readtrace("health " + folder.write("small.json", kSmall));
  CHECK(note.exit_code == 0);
  CHECK_THAT(note.out, ContainsSubstring("\nnote   no steps"));

  const Result fault = readtrace("health " + kNaive);
  CHECK(fault.exit_code == 1);
  CHECK(fault.err.empty());
  CHECK_THAT(fault.out, StartsWith("unhealthy: 172 events, ") &&
                            ContainsSubstring("\nfault  unattributed GPU operations launched "
                                              "before the recording: 2, 364.8us, 10.2%"));
  const auto examples = [](const std::string& out) {
    std::size_t count = 0;
    for (std::size_t at = 0; (at = out.find("e.g. ", at)) != std::string::npos; ++at) ++count;
    return count;
  };
  CHECK(examples(fault.out) == 1);
  CHECK(examples(readtrace("health " + kNaive + " --examples 5").out) == 2);
  CHECK(examples(readtrace("health - --examples 0 < " + kNaive).out) == 0);
  CHECK(readtrace("health " + kNaive + " --examples -1").exit_code == 2);

  const std::string cut = kSmall.substr(0, kSmall.size() - 20);
  const Result part = readtrace("health " + folder.write("cut.json", cut));
  CHECK(part.exit_code == 4);
  CHECK(part.err.empty());  // it stands among the findings
  CHECK_THAT(part.out, ContainsSubstring("fault  the file ends before its event list does"));
  CHECK(readtrace("health " + folder.write("none.json", R"({"traceEvents": []})")).exit_code == 1);
  CHECK(readtrace("health " + folder.write("notes.txt", "just text")).exit_code == 3);
}

TEST_CASE("no control character of a file is printed") {
  const Folder folder;
  std::string hostile = kSmall;
  hostile.replace(hostile.find("aten::add"), 9, R"(\u001b]0;title\u0007)");
  const Result result = readtrace("table " + folder.write("hostile.json", hostile));
  CHECK(result.exit_code == 0);
  CHECK_THAT(result.out, ContainsSubstring("\\x1b]0;title\\x07"));
  for (const char c : result.out) CHECK((c == '\n' || static_cast<unsigned char>(c) >= 0x20));
}

TEST_CASE("a full disk is said; a pipe that nobody reads ends it quietly") {
  const Result full = readtrace("table " + kNaive + " > /dev/full");
  CHECK(full.exit_code == 1);
  CHECK_THAT(one_line(full.err), ContainsSubstring("No space left on device"));

  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  ::close(ends[0]);
  const Result closed = readtrace("table " + kNaive + " >&" + std::to_string(ends[1]));
  ::close(ends[1]);
  CHECK(closed.exit_code == 1);
  CHECK(closed.err.empty());
}

TEST_CASE("diff: exit codes of a difference, of none, of a file that is not there or damaged") {
  const Folder folder;
  const std::string small = folder.write("small.json", kSmall);
  std::string other_text = kSmall;
  other_text.replace(other_text.find("aten::add"), 9, "aten::sub");
  const std::string other = folder.write("other.json", other_text);
  const std::string cut = folder.write("cut.json", kSmall.substr(0, kSmall.size() - 3));

  const Result same = readtrace("diff " + small + " " + small);
  CHECK(same.exit_code == 0);
  CHECK_THAT(same.out, EndsWith("No difference.\n"));
  CHECK(readtrace("diff --structure " + small + " - < " + small).exit_code == 0);
  const Result differs = readtrace("diff " + small + " " + other);
  CHECK(differs.exit_code == 0);
  CHECK_THAT(differs.out, ContainsSubstring("aten::add") && ContainsSubstring("aten::sub"));
  const Result structure = readtrace("diff --structure " + small + " " + other);
  CHECK(structure.exit_code == 1);
  CHECK_THAT(structure.out, ContainsSubstring("op aten::sub"));
  const Result damaged = readtrace("diff --structure " + small + " " + cut);
  CHECK(damaged.exit_code == 4);
  CHECK_THAT(damaged.err, ContainsSubstring("cut.json: "));
  CHECK(readtrace("diff " + cut + " " + small).exit_code == 4);
  const Result missing = readtrace("diff " + small + " " + (folder / "missing.json"));
  CHECK(missing.exit_code == 3);
  CHECK(missing.out.empty());
  CHECK_THAT(one_line(missing.err), ContainsSubstring("missing.json"));
  for (const std::string& bad : {std::string("- -"), small + " " + other + " --per step",
                                 small + " " + other + " --label nothing", small + " " + kNaive,
                                 small, small + " " + other + " --format html"}) {
    INFO(bad);
    const Result result = readtrace("diff " + bad);
    CHECK(result.exit_code == 2);
    CHECK(result.out.empty());
    CHECK_THAT(one_line(result.err), StartsWith("readtrace: "));
  }
  const Result markdown = readtrace("diff --format markdown " + small + " " + other);
  CHECK_THAT(markdown.out, ContainsSubstring("| op | 1 | 0 | 2.0us | - |"));
}

TEST_CASE("merge: one file, its ranks and shifts on stderr; refusals write nothing") {
  const Folder folder;
  const std::string a = folder.write("rank0.json", kSmall), b = folder.write("rank1.json", kSmall);
  const std::string out = folder / "all.json.gz";
  const Result merged = readtrace("merge " + a + " " + b + " -o " + out);
  CHECK(merged.exit_code == 0);
  CHECK(merged.out.empty());
  CHECK_THAT(
      merged.err,
      ContainsSubstring("rank 0 (by its name): " + a + ", times moved by 0.000us, ids by 0\n") &&
          ContainsSubstring("rank 1 (by its name): " + b + ", times moved by 0.000us, ids by 3\n"));
  CHECK_THAT(readtrace("table " + out).out, ContainsSubstring("10.000us"));

  const std::string none = folder / "none.json";
  const std::string cut = folder.write("rank2.json", kSmall.substr(0, kSmall.size() - 3));
  CHECK(readtrace("merge " + a + " " + cut + " -o " + (folder / "part.json")).exit_code == 4);
  for (const std::string& bad :
       {a + " -o " + none, a + " " + a + " -o " + none, a + " " + out + " -o " + none, a + " " + b,
        a + " " + b + " --align collective -o " + none,
        a + " " + b + " --align sideways -o " + none, a + " " + b + " -o " + a}) {
    INFO(bad);
    const Result result = readtrace("merge " + bad);
    CHECK(result.exit_code == 2);
    CHECK_THAT(one_line(result.err), StartsWith("readtrace: "));
  }
  CHECK(readtrace("merge " + a + " " + (folder / "x.json") + " -o " + none).exit_code == 3);
  CHECK(readtrace("merge " + a + " " + b + " -o /proc/none.json").exit_code == 1);
  CHECK_FALSE(fs::exists(none));
}

TEST_CASE("readtrace runs where there is no LibTorch") {
  const Result result = readtrace("--version > /dev/null; ldd " READTRACE);
  CHECK(result.exit_code == 0);
  CHECK_THAT(result.out, !ContainsSubstring("torch") && !ContainsSubstring("cuda"));
}

TEST_CASE("graph prints DOT, and writes SVG where the output's name asks for it") {
  const Folder folder;
  const std::string file = folder.write("fwd.graph.json", kGraph);
  const Result dot = readtrace("graph " + file);
  CHECK(dot.exit_code == 0);
  CHECK(dot.err.empty());
  CHECK_THAT(dot.out, StartsWith("digraph \"fwd\" {\n") && EndsWith("}\n") &&
                          ContainsSubstring("aten::exp #1") &&
                          ContainsSubstring("[label=\"[2, 4] fp32 32 B\"]"));
  CHECK(readtrace("graph - < " + file).out == dot.out);
  CHECK(readtrace("graph " + file + " --label fwd --format dot").out == dot.out);
  const std::string packed = folder / "fwd.graph.json.gz";
  REQUIRE(std::system(("gzip -c " + file + " > " + packed).c_str()) == 0);
  CHECK(readtrace("graph " + packed).out == dot.out);
  const Result svg = readtrace("graph " + file + " --format svg");
  CHECK(svg.exit_code == 0);
  CHECK_THAT(svg.out, StartsWith("<svg ") && EndsWith("</svg>\n"));
  CHECK(readtrace("graph " + file + " -o " + (folder / "a.svg")).out.empty());
  CHECK(read_file(folder / "a.svg") == svg.out);
  CHECK(readtrace("graph " + file + " -o " + (folder / "a.dot")).exit_code == 0);
  CHECK(read_file(folder / "a.dot") == dot.out);
  CHECK(readtrace("graph " + file + " --format dot -o " + (folder / "b.svg")).exit_code == 0);
  CHECK(read_file(folder / "b.svg") == dot.out);
}

TEST_CASE("graph: what it cannot do is one line and its exit code, and no file is written") {
  const Folder folder;
  const std::string file = folder.write("fwd.graph.json", kGraph);
  const std::string no_ops = R"({"nodes": [{"id": 2, "name": "fwd", "ctrl_deps": 1}]})";
  std::string dropped = kGraph;
  dropped.replace(dropped.find("\"id\": 2"), 7, "\"ID\": 2");
  const auto refused = [&](const std::string& arguments, int exit_code, const std::string& why) {
    const Result result = readtrace("graph " + arguments + " -o " + (folder / "out.svg"));
    INFO(arguments);
    CHECK(result.exit_code == exit_code);
    CHECK(result.out.empty());
    CHECK_THAT(one_line(result.err), StartsWith("readtrace: ") && ContainsSubstring(why));
    CHECK_FALSE(fs::exists(folder / "out.svg"));
  };
  refused(file + " --format png", 2, "dot");
  refused(file + " --label bwd", 2, "--label takes fwd");
  refused(folder.write("none.json", no_ops), 2, "no op that takes or returns a tensor");
  refused(kNaive, 3, "is a trace, not an execution trace");
  refused(folder.write("cut.json", kGraph.substr(0, 300)), 3, "is no whole JSON");
  refused(folder / "missing.json", 3, "cannot open");
  const Result part = readtrace("graph " + folder.write("dropped.json", dropped));
  CHECK(part.exit_code == 4);
  CHECK_THAT(part.out, ContainsSubstring("aten::exp #1"));
  CHECK_THAT(one_line(part.err), ContainsSubstring("1 node "));
}
