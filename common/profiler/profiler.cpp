// SPDX-License-Identifier: Apache-2.0
#include "profiler/profiler.h"

#include <ATen/Context.h>
#include <ATen/DeviceAccelerator.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/profiler_kineto.h>
#include <torch/csrc/profiler/kineto_shim.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstdlib>
#include <thread>
#include <utility>

#include "profiler/scratch_folder.h"
#include "trace/files.h"
#include "trace/reader.h"

namespace prof {
namespace {

namespace kineto = torch::autograd::profiler;
using KinetoActivities = std::set<torch::profiler::impl::ActivityType>;

// Kineto has one session per process and LibTorch one per thread; a second start would throw from
// deep inside, or lose the first one's events.
std::atomic<bool> profiler_exists{false};

KinetoActivities kineto_activities(const std::set<Activity>& asked) {
  const bool has_cuda = at::globalContext().hasCUDA();
  // Without a GPU, Kineto of the CUDA build prints an ERROR about its absence into every recording.
  // Above the highest level it is silent; a level set by the user stays.
  if (!has_cuda) ::setenv("KINETO_LOG_LEVEL", "5", /*overwrite=*/0);
  if (asked.contains(Activity::cuda) && !has_cuda) {
    throw Error(
        "Activity::cuda was asked for, but LibTorch can use no GPU here: leave `activities` empty "
        "to "
        "record what there is");
  }
  KinetoActivities activities;
  if (asked.empty() || asked.contains(Activity::cpu)) {
    activities.insert(torch::profiler::impl::ActivityType::CPU);
  }
  if (has_cuda && (asked.empty() || asked.contains(Activity::cuda))) {
    activities.insert(torch::profiler::impl::ActivityType::CUDA);
  }
  return activities;
}

// A JSON string without escapes: Kineto turns each backslash into a slash on its way to the file,
// and an escape undone like that would break the whole file without a word.
std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const bool is_control = static_cast<unsigned char>(c) < 0x20;
    out += is_control ? ' ' : c == '"' ? '\'' : c == '\\' ? '/' : c;
  }
  return out += '"';
}

std::string json_value(const std::variant<std::string, std::int64_t>& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return json_string(*text);
  return std::to_string(std::get<std::int64_t>(value));
}

// Kineto writes keys as they are: one quote in them and no reader accepts the file.
void check_metadata_keys(const decltype(ProfilerOptions::metadata)& metadata) {
  for (const auto& [key, value] : metadata) {
    const bool plain = std::all_of(key.begin(), key.end(), [](unsigned char c) {
      return std::isalnum(c) != 0 || c == '_' || c == '.' || c == '-' || c == ' ';
    });
    if (key.empty() || !plain) {
      throw Error(
          fmt::format("the metadata key {} is not made of letters, digits, blanks, '_', '.' "
                      "and '-' alone",
                      json_string(key)));
    }
  }
}

// What LibTorch saved, as an open file without a name: nothing is left behind, whatever happens.
class SavedTrace {
 public:
  explicit SavedTrace(torch::autograd::profiler::ProfilerResult& result) {
    const ScratchFolder scratch;
    const std::filesystem::path path = scratch.path() / "trace.json";
    result.save(path.string());  // reports no error: what it wrote is checked by reading it
    descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor_ < 0) {
      throw Error(
          fmt::format("LibTorch could not save the trace in {}; set TMPDIR to a folder with "
                      "free space",
                      scratch.path().parent_path().string()));
    }
  }
  SavedTrace(const SavedTrace&) = delete;
  SavedTrace& operator=(const SavedTrace&) = delete;
  ~SavedTrace() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  [[nodiscard]] trace::Trace read() const {
    try {
      trace::Trace trace = trace::read(fmt::format("/proc/self/fd/{}", descriptor_));
      if (!trace.report.truncated) return trace;
    } catch (const trace::ReadError&) {
      // Falls through: an empty or cut file has the same cause and the same remedy.
    }
    throw Error(
        "LibTorch saved only a part of the trace, so the disk that holds TMPDIR is full: free "
        "some space or set TMPDIR to another folder");
  }

  [[nodiscard]] std::string text() const {
    std::string text(static_cast<std::size_t>(::lseek(descriptor_, 0, SEEK_END)), '\0');
    for (std::size_t done = 0; done < text.size();) {
      const ssize_t got =
          ::pread(descriptor_, text.data() + done, text.size() - done, static_cast<off_t>(done));
      if (got <= 0) throw Error("the saved trace cannot be read back");
      done += static_cast<std::size_t>(got);
    }
    return text;
  }

 private:
  int descriptor_ = -1;
};

// Kineto ends the file with the path it was saved to; nobody wants to publish a temporary folder.
void set_trace_name(std::string& text, const std::filesystem::path& path) {
  constexpr std::string_view kKey = "\"traceName\": \"";
  const std::size_t key = text.rfind(kKey);
  if (key == std::string::npos) return;
  const std::size_t begin = key + kKey.size() - 1;
  const std::size_t end = text.find('"', begin + 1);
  if (end == std::string::npos) return;
  text.replace(begin, end + 1 - begin, json_string(path.filename().string()));
}

}  // namespace

// torch.profiler's state machine. Between two steps the action changes from `action_` to the
// schedule's next one (nullopt: the profiler stops), and that decides what is called.
class Profiler::Impl {
 public:
  Impl(Profiler& owner, ProfilerOptions options)
      : owner_(owner),
        options_(std::move(options)),
        activities_(kineto_activities(options_.activities)) {
    if (options_.schedule) options_.schedule->validate();
    check_metadata_keys(options_.metadata);
    options_.record_shapes |= options_.with_flops;
    if (profiler_exists.exchange(true)) {
      throw Error("another prof::Profiler is running: stop() it before the next one starts");
    }
    try {
      change_to(action_of_step());
    } catch (...) {
      profiler_exists = false;
      throw;
    }
    begin_step();
  }

  ~Impl() {
    if (!running_) return;
    try {
      step_mark_.reset();
      if (std::this_thread::get_id() == thread_) abandon();
    } catch (...) {
      // Nobody is left to tell.
    }
    profiler_exists = false;
  }

  void step() {
    expect_running_here();
    step_mark_.reset();
    ++step_;
    change_to(action_of_step());
    begin_step();
  }

  const trace::Trace& stop() {
    if (running_) {
      expect_running_here();
      step_mark_.reset();
      // From here on the profiler counts as stopped, even if saving or the callback throws.
      running_ = false;
      profiler_exists = false;
      change_to(std::nullopt);
    }
    return trace();
  }

  [[nodiscard]] const trace::Trace& trace() const {
    if (!saved_) {
      throw Error(
          "nothing was recorded yet: run the loop for at least skip_first + wait + warmup + "
          "active steps");
    }
    return trace_;
  }

  void export_chrome_trace(const std::filesystem::path& path) const {
    (void)trace();  // throws where there is none
    std::string text = saved_->text();
    set_trace_name(text, path);
    try {
      trace::write_file(path, path.extension() == ".gz" ? trace::gzip(text) : text);
    } catch (const trace::WriteError& error) {
      throw Error(error.what());
    }
  }

 private:
  [[nodiscard]] Action action_of_step() const {
    return options_.schedule ? options_.schedule->action_at(step_) : Action::record;
  }

  void expect_running_here() const {
    if (!running_) throw Error("this profiler is stopped: make a new one for the next recording");
    if (std::this_thread::get_id() != thread_) {
      throw Error(
          "LibTorch profiles per thread: call step() and stop() on the thread that made the "
          "Profiler");
    }
  }

  void begin_step() {
    if (options_.schedule) step_mark_.emplace(fmt::format("ProfilerStep#{}", step_));
  }

  void change_to(std::optional<Action> next) {
    const bool was_recording = action_ == Action::record || action_ == Action::record_and_save;
    const bool ends_cycle = action_ == Action::record_and_save || (was_recording && !next);
    if (ends_cycle) {
      action_ = Action::none;  // before anything that may throw: a cycle ends only once
      finish_cycle();
    }
    if (!next) {
      if (prepared_) abandon();  // stopped in the middle of a warm-up: there is nothing to save
      return;
    }
    const bool records = *next == Action::record || *next == Action::record_and_save;
    if ((records || *next == Action::warmup) && !prepared_) prepare();
    if (records && !recording_) start();
    action_ = *next;
  }

  [[nodiscard]] kineto::ProfilerConfig config() const {
    return kineto::ProfilerConfig(kineto::ProfilerState::KINETO, options_.record_shapes,
                                  options_.profile_memory, /*with_stack=*/false,
                                  options_.with_flops);
  }

  void prepare() {
    kineto::prepareProfiler(config(), activities_);
    prepared_ = true;
  }

  void start() {
    // Kernels of the warm-up that still run when recording begins would be counted as ours.
    synchronize();
    kineto::enableProfiler(config(), activities_);
    recording_ = true;
    add_metadata();
  }

  void add_metadata() const {
    const auto add = [](const std::string& key, const std::string& json) {
      kineto::addMetadataJson(key, json);
    };
    if (options_.profile_memory) add("profile_memory", "1");
    if (options_.record_shapes) add("record_shapes", "1");
    if (options_.with_flops) add("with_flops", "1");
    // Holistic Trace Analysis refuses files that do not say which rank they are.
    add("distributedInfo", R"({"backend": "none", "rank": 0, "world_size": 1})");
    for (const auto& [key, value] : options_.metadata) add(key, json_value(value));
  }

  void finish_cycle() {
    saved_.reset();  // should saving fail, the cycle before must not pass for this one
    const auto result = disable();
    auto saved = std::make_unique<SavedTrace>(*result);
    trace_ = saved->read();
    saved_ = std::move(saved);
    if (options_.on_trace_ready) options_.on_trace_ready(owner_);
  }

  std::unique_ptr<kineto::ProfilerResult> disable() {
    synchronize();  // what is still running on the device belongs to the recording
    recording_ = prepared_ = false;
    return kineto::disableProfiler();
  }

  void abandon() {
    if (!prepared_) return;
    if (!recording_) start();  // LibTorch ends only what was enabled
    (void)disable();
  }

  void synchronize() const {
    if (activities_.contains(torch::profiler::impl::ActivityType::CUDA)) {
      at::accelerator::synchronizeDevice(at::accelerator::getDeviceIndex());
    }
  }

  Profiler& owner_;
  ProfilerOptions options_;
  KinetoActivities activities_;
  std::thread::id thread_ = std::this_thread::get_id();
  std::int64_t step_ = 0;
  Action action_ = Action::none;
  bool running_ = true;
  bool prepared_ = false;
  bool recording_ = false;
  std::optional<record_function> step_mark_;
  std::unique_ptr<SavedTrace> saved_;
  trace::Trace trace_;
};

Profiler::Profiler(ProfilerOptions options)
    : impl_(std::make_unique<Impl>(*this, std::move(options))) {}
Profiler::~Profiler() = default;
void Profiler::step() {
  impl_->step();
}
const trace::Trace& Profiler::stop() {
  return impl_->stop();
}
const trace::Trace& Profiler::trace() const {
  return impl_->trace();
}
void Profiler::export_chrome_trace(const std::filesystem::path& path) const {
  impl_->export_chrome_trace(path);
}

}  // namespace prof
