//===- FrontPicture.cpp - time against memory, as a picture ---------------===//
//
// Each plan of the front is a point; the steps between them are what no plan that was met is below:
//
//   a call │ o
//          │ └──o
//          │    └─────o
//          └────────────── memory of a rank
//
// Points carry their figures as attributes (`data-ns`), which tests compare with the report.
//
//===----------------------------------------------------------------------===//
#include "cleave/Driver/FoundPlanText.h"

#include "cleave/Pipelines/Report.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace cleave;
using namespace cleave::driver;
using llvm::formatv;

namespace {
class FrontPicture {
public:
  FrontPicture(llvm::raw_ostream &os, llvm::ArrayRef<PlanCell> front) : os(os), front(front) {
    for (const PlanCell &cell : front) {
      mostNs = std::max(mostNs, cell.ns);
      mostBytes = std::max(mostBytes, static_cast<double>(cell.peakBytes));
    }
  }
  void draw();

private:
  static constexpr int kLeft = 90, kTop = 40, kWidth = 640, kHeight = 360, kTicks = 4;
  static constexpr double kRoom = 1.1; ///< above the largest of both

  double getX(double bytes) const { return kLeft + bytes / (kRoom * mostBytes) * kWidth; }
  double getY(double ns) const { return kTop + kHeight - ns / (kRoom * mostNs) * kHeight; }
  double getX(const PlanCell &cell) const { return getX(static_cast<double>(cell.peakBytes)); }
  void drawAxes();
  void drawPoint(const PlanCell &cell);

  llvm::raw_ostream &os;
  llvm::ArrayRef<PlanCell> front;
  double mostNs = 1, mostBytes = 1;
};
} // namespace

/// Both from 0, so that the eye compares lengths.
void FrontPicture::drawAxes() {
  os << formatv("<path d=\"M{0} {1}V{2}H{3}\" fill=\"none\" stroke=\"#555\"/>\n", kLeft, kTop, kTop + kHeight,
                kLeft + kWidth);
  for (int tick = 0; tick <= kTicks; ++tick) {
    double bytes = mostBytes * tick / kTicks, ns = mostNs * tick / kTicks;
    os << formatv("<text text-anchor=\"middle\" fill=\"#555\" x=\"{0:f1}\" y=\"{1}\">{2}</text>\n", getX(bytes),
                  kTop + kHeight + 18, formatBytes(static_cast<int64_t>(bytes)));
    os << formatv("<text text-anchor=\"end\" fill=\"#555\" x=\"{0}\" y=\"{1:f1}\">{2}</text>\n", kLeft - 6,
                  getY(ns) + 4, formatTime(ns));
  }
  os << formatv("<text x=\"{0}\" y=\"{1}\" text-anchor=\"end\">memory of a rank</text>\n", kLeft + kWidth,
                kTop + kHeight + 36)
     << formatv("<text x=\"8\" y=\"{0}\">a call</text>\n", kTop - 8);
}

/// The mesh stands right above its point, and all of it under the pointer.
void FrontPicture::drawPoint(const PlanCell &cell) {
  std::string mesh;
  llvm::raw_string_ostream text(mesh);
  llvm::printHTMLEscaped(cell.mesh, text);
  os << formatv("<circle class=\"point\" cx=\"{0:f1}\" cy=\"{1:f1}\" r=\"4\" fill=\"#3467b2\" data-ns=\"{2:f3}\" "
                "data-bytes=\"{3}\"><title>{4}: {5}, {6} a rank</title></circle>\n",
                getX(cell), getY(cell.ns), cell.ns, cell.peakBytes, mesh, formatTime(cell.ns),
                formatBytes(cell.peakBytes))
     << formatv("<text x=\"{0:f1}\" y=\"{1:f1}\">{2}</text>\n", getX(cell) + 6, getY(cell.ns) - 6, mesh);
}

/// The line first, so that points and their names are on top of it.
void FrontPicture::draw() {
  int width = kLeft + kWidth + 120, height = kTop + kHeight + 50;
  os << formatv("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
                "font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
                width, height);
  drawAxes();
  os << "<polyline class=\"front\" fill=\"none\" stroke=\"#3467b2\" points=\"";
  // The fastest takes most memory: from there on to less of it, and longer.
  for (auto [index, cell] : llvm::enumerate(front)) {
    if (index > 0)
      os << formatv(" {0:f1},{1:f1}", getX(front[index - 1]), getY(cell.ns));
    os << formatv("{0}{1:f1},{2:f1}", index ? " " : "", getX(cell), getY(cell.ns));
  }
  os << "\"/>\n";
  for (const PlanCell &cell : front)
    drawPoint(cell);
  os << "</svg>\n";
}

// Without points it would be axes alone: a front has at least the best plan.
void cleave::driver::drawFrontSvg(llvm::raw_ostream &os, const FoundPlan &found) {
  FrontPicture(os, found.front).draw();
}
