//===- LauncherStore.h - the secret goes through torchrun's store -*- C++ -*-===//
//
// torchrun's agent has a store of keys and values at MASTER_PORT (torch's TCPStore, 2.2 or later), which all ranks reach. Rank 0
// sets the secret there, the others get it. It is as secret as that store: whoever can connect to it can read it, too.
//
#ifndef CLEAVE_LIB_RUNTIME_TCP_LAUNCHERSTORE_H
#define CLEAVE_LIB_RUNTIME_TCP_LAUNCHERSTORE_H

#include "../Secret.h"
#include "cleave/Runtime/Failure.h"
#include "cleave/Runtime/Launch.h"

namespace cleave::runtime {

/// Rank 0 draws the secret. The others wait for it, `deadline` seconds at most. Precondition: there is a store.
Status exchangeSecret(const Launch &launch, double deadline, Secret &secret);

} // namespace cleave::runtime

#endif // CLEAVE_LIB_RUNTIME_TCP_LAUNCHERSTORE_H
