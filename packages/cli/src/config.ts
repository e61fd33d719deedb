import type { Logger, Registry, Workflows } from "pawl";

/** What `createWorkflows` gives, whatever its workflows. */
export type AnyPawl = Omit<Workflows<Registry, never>, "workflows"> & {
  readonly workflows: object;
};

export type PawlConfig = {
  readonly pawl: AnyPawl;
  /** Called at the end, after `pawl.close()`: ends what the config opened, such as a pool. */
  readonly close?: (() => void | Promise<void>) | undefined;
  readonly dev?: DevConfig | undefined;
};

/** Settings of `pawl dev`; its options win. */
export type DevConfig = {
  /** Default 3000; 0 takes any free one. */
  readonly port?: number | undefined;
  /** Default 127.0.0.1: this machine only. */
  readonly host?: string | undefined;
  /** Files and folders, relative to the config, whose changes restart it. Default: the config's folder. */
  readonly watch?: readonly string[] | undefined;
};

/** What a config that is a function is given. */
export type ConfigContext = {
  readonly command: string;
  /** Writes what the engine tells to standard error, readable: pass it to `createWorkflows`. */
  readonly logger: Logger;
};

type Made = AnyPawl | PawlConfig;

/** What a config file may export as its default. */
export type ConfigExport =
  | Made
  | Promise<Made>
  | ((context: ConfigContext) => Made | Promise<Made>);

/** Types the default export of `pawl.config.ts`. */
export function defineConfig<const C extends ConfigExport>(config: C): C {
  return config;
}
