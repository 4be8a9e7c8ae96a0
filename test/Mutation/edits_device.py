"""Small errors in kernels of devices and in what emulates them."""
from edit import Edit

EMULATION = "CleaveEmulationTests"
SPLIT = "lit:Exec/Transforms/split-kernels"

EDITS = [
    # ===--- Templates -------------------------------------------------------===
    Edit("row-forgets-its-edges", "lib/Codegen/DeviceRow.cpp", "lanes.front() = combine(lanes.front(), lift(getEdge()));", "",
         "what is before and behind whole vectors of a row is not reduced", [EMULATION]),
    Edit("row-counts-a-vector-too-many", "lib/Codegen/DeviceRow.cpp", "e.places.isLess(place, extent)", "e.places.isLess(place, extent + 1)",
         "what is behind the end of a row counts", [EMULATION], after="return {e.places.clamp(place, 0, extent - lanes), "),
    Edit("team-without-a-barrier", "lib/Codegen/DeviceRow.cpp", "e.barrier();", "",
         "warps read what others have not written yet", [EMULATION], after="e.store(slot, value, {p.div(e.getThread(), kWarp)});"),
    Edit("column-without-its-last-part", "lib/Codegen/DeviceRow.cpp", "number < team", "number < team - 1",
         "a thread's part of a column is lost", [EMULATION, "lit:Codegen/device"], after="Values sum;"),
    Edit("map-forgets-the-rest", "lib/Codegen/DeviceKernel.cpp", "rest = count % most;", "",
         "elements behind the last vector are not computed", [EMULATION]),
    Edit("turn-without-a-barrier", "lib/Codegen/DeviceTurn.cpp", "e.barrier();", "",
         "a square is read before it is there", [EMULATION]),
    Edit("stage-of-means-is-a-sum", "lib/Codegen/DeviceStages.cpp", "c.reduce(op.getKind(), partial, dims)",
         "c.reduce(nn::ReduceKind::Sum, partial, dims)", "the second stage adds up means", [SPLIT]),
    Edit("scan-forgets-what-is-carried", "lib/Codegen/DeviceLines.cpp", "m.add(m.add(carried[0], before), inWarp)",
         "m.add(before, inWarp)", "each round of a running sum begins at 0", [EMULATION]),
    Edit("scan-in-one-set-of-slots", "lib/Codegen/DeviceLines.cpp", "p.mul(p.rem(round, 2), warps)", "p.number(0)",
         "slots are written while others read them", [EMULATION]),
    Edit("sort-forgets-the-order-of-equals", "lib/Codegen/DeviceLines.cpp", "m.both(isEarlier, m.compare(Relation::Eq, isWorse, 0.0))",
         "m.compare(Relation::Eq, isWorse, 0.0)", "of equal ones any may come first", [EMULATION]),
    Edit("attention-keeps-its-old-sums", "lib/Codegen/DeviceAttention.cpp", "m.mul(carried[i], factor)", "carried[i]",
         "sums are not scaled to the new largest score", [EMULATION]),
    Edit("attention-adds-sums-as-they-are", "lib/Codegen/DeviceAttention.cpp",
         "m.fma(load(warp, p.number(1)), factors.back(), total)", "m.add(load(warp, p.number(1)), total)",
         "sums of warps are not scaled to the largest score of all", [EMULATION]),
    Edit("flash-without-a-barrier", "lib/Codegen/DeviceFlash.cpp", "e.barrier();", "",
         "keys are overwritten while others read them", [EMULATION], after="Values FlashKernel::step"),
    Edit("flash-sees-keys-that-are-not", "lib/Codegen/DeviceFlash.cpp", "if (keys % height)", "if (false)",
         "the last key counts several times", [EMULATION], after="finishScore("),
    Edit("flash-keeps-its-old-sums", "lib/Codegen/DeviceFlash.cpp", "sum = scale(sum, factor);", "(void)sum;",
         "sums are not scaled to the new largest score", [EMULATION]),
    Edit("flash-weighs-other-keys", "lib/Codegen/DeviceFragments.cpp", "tile.inOrderOfSums ? inDepth : unit * inDepth",
         "unit * inDepth", "weights of tf32 meet values of other keys", [EMULATION]),
    Edit("flash-weights-of-one-query", "lib/Codegen/DeviceFlashLanes.cpp", "i / each * kDown * pitch + i % each * kAcross",
         "i % each * kAcross", "the weights of a lane's queries lie in one place", [EMULATION]),
    # ===--- Emulation -------------------------------------------------------===
    Edit("emulator-does-not-flush", "lib/Codegen/DeviceCalls.cpp", 'name.contains(".ftz") && call.getType()->isFloatTy()', "false",
         "approximations give denormal numbers", ["CleaveCodegenTests"]),
]
