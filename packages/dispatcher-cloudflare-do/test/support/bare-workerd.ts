import { spawn, type ChildProcess } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { bundled, worker } from "./workerd.js";

/**
 * workerd alone, by its own binary and configuration, so that nothing restarts, proxies or drains it. Lines
 * that workers send to LEDGER stay here when it is killed.
 */
export class BareWorkerd {
  readonly ledger: string[] = [];
  readonly #folder: string;
  readonly #server: Server;
  #child: ChildProcess | null = null;
  #port = 0;

  private constructor(folder: string) {
    this.#folder = folder;
    this.#server = createServer((request, response) => {
      const noted = (line: string): void => {
        this.ledger.push(line);
        response.writeHead(204).end();
      };
      // A line that a kill cuts off does not count.
      text(request).then(noted, () => response.destroy());
    });
  }

  /** Starts it with a worker of test/workers whose class `Host` is bound as OBJECTS. */
  static async of(name: string): Promise<BareWorkerd> {
    const bare = new BareWorkerd(await mkdtemp(path.join(tmpdir(), "pawl-workerd-")));
    await new Promise<void>((resolve) => bare.#server.listen(0, "127.0.0.1", resolve));
    const { port } = bare.#server.address() as AddressInfo;
    await mkdir(path.join(bare.#folder, "storage"));
    await writeFile(path.join(bare.#folder, "worker.mjs"), await bundled(worker(name)));
    await writeFile(path.join(bare.#folder, "config.capnp"), configuration(port));
    await bare.start();
    return bare;
  }

  async start(): Promise<void> {
    const require = createRequire(import.meta.url);
    const { default: binary } = require("workerd") as { default: string };
    const child = spawn(binary, ["serve", "config.capnp", "--control-fd=3"], {
      cwd: this.#folder,
      stdio: ["ignore", "ignore", "ignore", "pipe"],
    });
    this.#child = child;
    this.#port = await new Promise((resolve, reject) => {
      child.once("exit", (code) => reject(new Error(`workerd ended with ${code}`)));
      (child.stdio[3] as Readable).on("data", (data: Buffer) => {
        const listening = /"event":"listen".*?"port":(\d+)/.exec(data.toString());
        if (listening !== null) resolve(Number(listening[1]));
      });
    });
  }

  /** Kills it with kill -9, and resolves when it is gone. */
  async kill(): Promise<void> {
    const child = this.#child;
    this.#child = null;
    if (child === null) return;
    const gone = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGKILL");
    await gone;
  }

  fetch(route: string, init: RequestInit = {}): Promise<Response> {
    return fetch(`http://127.0.0.1:${this.#port}${route}`, init);
  }

  async end(): Promise<void> {
    await this.kill();
    this.#server.closeAllConnections();
    this.#server.close();
    await rm(this.#folder, { recursive: true });
  }
}

const configuration = (ledgerPort: number): string => `
using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = .worker),
    (name = "storage", disk = (path = "storage", writable = true)),
    (name = "ledger", external = (address = "127.0.0.1:${ledgerPort}", http = ())),
  ],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "main")],
);
const worker :Workerd.Worker = (
  modules = [(name = "worker.mjs", esModule = embed "worker.mjs")],
  compatibilityDate = "2026-04-20",
  bindings = [
    (name = "OBJECTS", durableObjectNamespace = "Host"),
    (name = "LEDGER", service = "ledger"),
  ],
  durableObjectNamespaces = [(className = "Host", uniqueKey = "pawl", enableSql = true)],
  durableObjectStorage = (localDisk = "storage"),
);
`;
