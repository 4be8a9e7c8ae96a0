//===- DrawSvg.cpp - a schedule as a picture and as a page ----------------===//
//
// Each rank has a row of bars, and below it what it holds over time, all ranks to one scale:
//
//   rank 0  [F0][F1][F2]    [ B0 ][ B1 ][ B2 ]
//           __--~~~~~~~~~~~~~~~--__
//
// Bars carry rank, action and times as attributes (`data-start`): the page reads them for what it shows under the
// pointer, and tests compare them with the report.
//
//===----------------------------------------------------------------------===//
#include "cleave/Schedule/Draw.h"

#include "Bars.h"
#include "cleave/Schedule/Numbers.h"
#include "cleave/Support/Status.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace cleave;
using namespace cleave::schedule;

/// More, and no browser shows it.
static constexpr size_t kMostActions = 200'000;
static constexpr int kLeft = 70, kWidth = 1120, kTop = 34, kBar = 24, kCurve = 16, kRow = 50;

/// Softer than a terminal's: names are written over them.
static llvm::StringRef getFill(const Bar &bar) {
  constexpr llvm::StringLiteral colors[] = {"#7aa6e8", "#7fc98f", "#6fcfcf", "#f0c75e"};
  if (bar.isUpdate())
    return "#c9c9c9";
  return bar.actions.size() > 1 ? "#c79be0" : llvm::StringRef(colors[static_cast<size_t>(bar.actions[0].kind)]);
}

/// As text of XML.
static std::string escape(llvm::StringRef text) {
  std::string escaped;
  llvm::raw_string_ostream os(escaped);
  // Names come from files: what a page cannot hold is shown as a question mark.
  for (char c : text)
    c < ' ' || c > '~' ? os << '?' : os << c;
  std::string html;
  llvm::raw_string_ostream out(html);
  llvm::printHTMLEscaped(escaped, out);
  return html;
}

namespace {

class Picture {
public:
  Picture(llvm::raw_ostream &os, const Schedule &schedule, const Costs &costs, const Simulation &simulation)
      : os(os), schedule(schedule), costs(costs), simulation(simulation),
        scale(simulation.makespan > 0 ? kWidth / simulation.makespan : 0) {
    if (!simulation.peak.memory.empty())
      most = *llvm::max_element(simulation.peak.memory);
  }

  static int getHeight(const Schedule &schedule) { return kTop + kRow * schedule.numRanks + 30; }

  /// `title` in front of the summary.
  void draw(llvm::StringRef title) {
    os << "<text x=\"8\" y=\"20\" font-size=\"14\">" << escape((title + getTitle()).str()) << "</text>\n";
    for (int32_t rank = 0; rank < schedule.numRanks; ++rank)
      drawRank(rank);
    drawAxis(kTop + kRow * schedule.numRanks + 6);
  }

private:
  /// The summary, so that a picture can stand alone.
  std::string getTitle() const {
    return llvm::formatv("{0}: {1} ranks, {2} stages, {3} microbatches; makespan {4}, bubble {5:p2}", schedule.name,
                         schedule.numRanks, schedule.numStages, schedule.numMicrobatches,
                         formatNumber(simulation.makespan), simulation.bubbleMakespan);
  }

  /// Time 0 is behind the names of ranks.
  double getX(double time) const { return kLeft + time * scale; }

  /// Gray is idle.
  void drawRank(int32_t rank) {
    int y = kTop + kRow * rank;
    os << "<g><text x=\"8\" y=\"" << y + 16 << "\">rank " << rank << "</text>\n"
       << "<rect x=\"" << kLeft << "\" y=\"" << y << "\" width=\"" << kWidth << "\" height=\"" << kBar
       << "\" fill=\"#eee\"/>\n";
    visitBars(schedule, simulation, rank, [&](const Bar &bar) { drawBar(rank, y, bar); });
    drawCurve(rank, y + kBar + 2 + kCurve);
    os << "</g>\n";
  }

  void drawBar(int32_t rank, int y, const Bar &bar) {
    // Nine digits: the page subtracts times, and tests compare them.
    std::string text = bar.getText(), start = formatNumber(bar.time.start, 9), end = formatNumber(bar.time.end, 9);
    double width = (bar.time.end - bar.time.start) * scale;
    os << "<rect class=\"bar\" x=\"" << formatNumber(getX(bar.time.start), 7) << "\" y=\"" << y << "\" width=\""
       << formatNumber(width) << "\" height=\"" << kBar << "\" fill=\"" << getFill(bar)
       << "\" stroke=\"#555\" stroke-width=\"0.5\" data-rank=\"" << rank << "\" data-action=\"" << text
       << "\" data-start=\"" << start << "\" data-end=\"" << end << "\"><title>rank " << rank << ": " << text
       << ", from " << start << " to " << end << "</title></rect>\n";
    // As wide as letters of this size are, or nothing: neighbors would cut it off. Of all, W is the widest.
    if (width > 5.8 * double(text.size()) + 3.2 * double(llvm::count(text, 'W')) + 1)
      os << "<text pointer-events=\"none\" font-size=\"9\" text-anchor=\"middle\" x=\""
         << formatNumber(getX((bar.time.start + bar.time.end) / 2), 7) << "\" y=\"" << y + 15 << "\">" << text
         << "</text>\n";
  }

  /// Steps above `base`; the highest of all ranks is kCurve high.
  void drawCurve(int32_t rank, int base) {
    if (most <= 0)
      return;
    os << "<polyline class=\"memory\" fill=\"#e8d5d5\" stroke=\"#a33\" stroke-width=\"0.7\" points=\"" << kLeft << ','
       << base;
    double before = 0;
    for (auto [time, memory] : getMemoryCurve(schedule, costs, simulation, rank)) {
      os << ' ' << formatNumber(getX(time), 7) << ',' << formatNumber(base - before / most * kCurve) << ' '
         << formatNumber(getX(time), 7) << ',' << formatNumber(base - memory / most * kCurve);
      before = memory;
    }
    os << ' ' << kLeft + kWidth << ',' << formatNumber(base - before / most * kCurve) << ' ' << kLeft + kWidth << ','
       << base << "\"><title>memory of rank " << rank << ": at most " << formatNumber(simulation.peak.memory[rank])
       << "</title></polyline>\n";
  }

  /// Eighths of the whole: any other numbers would have to be looked for.
  void drawAxis(int y) {
    constexpr int ticks = 8;
    for (int tick = 0; tick <= ticks; ++tick) {
      double time = simulation.makespan * tick / ticks;
      // The last one has the unit, and must not stand over the edge.
      bool isLast = tick == ticks;
      os << "<text text-anchor=\"" << (isLast ? "end" : "middle") << "\" fill=\"#555\" x=\""
         << formatNumber(getX(time), 7) << "\" y=\"" << y + 12 << "\">" << formatNumber(time)
         << (isLast && costs.unit != "1" ? escape(" " + costs.unit) : "") << "</text>\n";
    }
  }

  llvm::raw_ostream &os;
  const Schedule &schedule;
  const Costs &costs;
  const Simulation &simulation;
  double scale, most = 0;
};

} // namespace

/// One picture, or that of a run below the one of the schedule.
static void drawAll(llvm::raw_ostream &os, const Schedule &schedule, const Costs &costs, const Simulation &simulation,
                    const Simulation *measured) {
  int width = kLeft + kWidth + 20, one = Picture::getHeight(schedule), height = measured ? 2 * one : one;
  os << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" << width << "\" height=\"" << height << "\" viewBox=\"0 0 "
     << width << ' ' << height << "\" font-family=\"sans-serif\" font-size=\"11\">\n"
     << "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
  Picture(os, schedule, costs, simulation).draw(measured ? "predicted: " : "");
  if (measured) {
    os << "<g transform=\"translate(0 " << one << ")\">\n";
    Picture(os, schedule, costs, *measured).draw("measured: ");
    os << "</g>\n";
  }
  os << "</svg>\n";
}

static constexpr llvm::StringLiteral kHead = R"(<!DOCTYPE html>
<html><head><meta charset="utf-8"><title>schedule</title><style>
body { font-family: sans-serif; margin: 16px; }
#tip { position: fixed; display: none; background: #222; color: #fff; padding: 4px 8px; border-radius: 4px; font-size: 13px;
       pointer-events: none; }
.bar:hover { stroke: #000; stroke-width: 2; }
.key span { display: inline-block; padding: 2px 8px; margin-right: 6px; }
</style></head><body>
<p class="key"><span style="background:#7aa6e8">F forward</span><span style="background:#7fc98f">B backward</span><span
 style="background:#6fcfcf">I gradient of inputs</span><span style="background:#f0c75e">W gradient of weights</span><span
 style="background:#c79be0">F and B as one</span><span
 style="background:#c9c9c9">update</span><span style="background:#e8d5d5">memory</span></p>
<div id="tip"></div>
)";

/// What a browser shows by itself comes late: this comes at once.
static constexpr llvm::StringLiteral kScript = R"(<script>
const tip = document.getElementById('tip');
for (const bar of document.querySelectorAll('.bar')) {
  bar.querySelector('title').remove();
  bar.addEventListener('mousemove', event => {
    const d = bar.dataset;
    tip.textContent = `rank ${d.rank}: ${d.action}, from ${d.start} to ${d.end} (${+(d.end - d.start).toPrecision(6)})`;
    tip.style.display = 'block';
    tip.style.left = Math.min(event.clientX + 12, innerWidth - tip.offsetWidth - 8) + 'px';
    const below = event.clientY + 16;
    tip.style.top = (below + tip.offsetHeight < innerHeight ? below : event.clientY - tip.offsetHeight - 8) + 'px';
  });
  bar.addEventListener('mouseleave', () => tip.style.display = 'none');
}
</script></body></html>
)";

static llvm::Error checkSize(const Schedule &schedule) {
  size_t count = 0;
  for (const std::vector<Action> &program : schedule.programs)
    count += program.size();
  if (count > kMostActions)
    return makeError(
        "a picture shows at most {0} actions, and there are {1}; --draw FILE.json makes a trace of any size",
        kMostActions, count);
  return llvm::Error::success();
}

llvm::Error cleave::schedule::drawSvg(llvm::raw_ostream &os, const Schedule &schedule, const Costs &costs,
                                      const Simulation &simulation, const Simulation *measured) {
  if (llvm::Error error = checkSize(schedule))
    return error;
  drawAll(os, schedule, costs, simulation, measured);
  return llvm::Error::success();
}

llvm::Error cleave::schedule::drawHtml(llvm::raw_ostream &os, const Schedule &schedule, const Costs &costs,
                                       const Simulation &simulation, const Simulation *measured) {
  if (llvm::Error error = checkSize(schedule))
    return error;
  os << kHead;
  drawAll(os, schedule, costs, simulation, measured);
  os << kScript;
  return llvm::Error::success();
}
