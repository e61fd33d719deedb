import type { Logger, Registry, Workflows } from "pawl";

/** The engine that `createWorkflows` returns, whatever its workflows. */
export type AnyPawl = Omit<Workflows<Registry, never>, "workflows"> & {
  readonly workflows: object;
};

export type PawlConfig = {
  readonly pawl: AnyPawl;
  /** Called at the end, after `pawl.close()`, to end what the config opened, such as a pool. */
  readonly close?: (() => void | Promise<void>) | undefined;
  readonly dev?: DevConfig | undefined;
};

/** Settings of `pawl dev`. The options of the command take precedence. */
export type DevConfig = {
  /** The port; 3000 by default, and 0 for any free one. */
  readonly port?: number | undefined;
  /** The address to listen on; 127.0.0.1 by default, which is this machine only. */
  readonly host?: string | undefined;
  /** Files and folders, relative to the config, whose changes restart it; the config's folder by default. */
  readonly watch?: readonly string[] | undefined;
};

/** The argument of a config that is a function. */
export type ConfigContext = {
  readonly command: string;
  /** Writes the engine's log to standard error, for people to read. Pass it to `createWorkflows`. */
  readonly logger: Logger;
};

type Made = AnyPawl | PawlConfig;

/** The default export of a config file. */
export type ConfigExport =
  | Made
  | Promise<Made>
  | ((context: ConfigContext) => Made | Promise<Made>);

/** Types the default export of `pawl.config.ts`. */
export function defineConfig<const C extends ConfigExport>(config: C): C {
  return config;
}
