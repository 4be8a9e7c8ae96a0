// Starts the language servers of Cleave, and does nothing else: what they say is theirs.
//
//   plans (YAML files that `cleave.plans` names)   cleave lsp
//   .mlir files                                    cleave-lsp-server
"use strict";

const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let clients = [];

function makeClients() {
  const settings = vscode.workspace.getConfiguration("cleave");
  const dims = settings.get("dims");
  const plans = new LanguageClient("cleave-plans", "Cleave plans",
    { command: settings.get("path"), args: ["lsp", ...(dims ? ["--dim", dims] : [])] },
    {
      documentSelector: settings.get("plans").map((pattern) => ({ language: "yaml", pattern })),
      initializationOptions: { model: settings.get("model") },
    });
  const path = settings.get("mlir.path");
  const mlir = new LanguageClient("cleave-mlir", "Cleave MLIR", { command: path }, { documentSelector: [{ language: "mlir" }] });
  return path ? [plans, mlir] : [plans];
}

async function start() {
  clients = makeClients();
  // One that is not installed says so itself, and keeps the other from nothing.
  await Promise.allSettled(clients.map((client) => client.start()));
}

async function stop() {
  await Promise.allSettled(clients.map((client) => client.stop()));
  clients = [];
}

exports.activate = async (context) => {
  context.subscriptions.push(vscode.commands.registerCommand("cleave.restart", async () => {
    await stop();
    await start();
  }));
  await start();
};

exports.deactivate = stop;
