export {
  defineConfig,
  type AnyPawl,
  type ConfigContext,
  type ConfigExport,
  type DevConfig,
  type PawlConfig,
} from "./config.js";
