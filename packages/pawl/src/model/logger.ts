import { ValidationError } from "./errors.js";

/** Where the engine reports. `event` is a fixed word to search for; what varies is in `fields`. */
export interface Logger {
  debug(event: string, fields?: Record<string, unknown>): void;
  info(event: string, fields?: Record<string, unknown>): void;
  warn(event: string, fields?: Record<string, unknown>): void;
  error(event: string, fields?: Record<string, unknown>): void;
}

type Level = keyof Logger;

/** A logger that never throws: what it was to tell of matters more than that it is told. */
export function guardedLogger(given: Logger | undefined): Logger {
  const level = (name: Level): Logger[Level] => {
    if (given === undefined) return () => {};
    if (typeof given?.[name] !== "function") {
      throw new ValidationError("logger must have the functions debug, info, warn and error");
    }
    return (event, fields) => {
      try {
        given[name](event, fields);
      } catch {
        // There is nobody left to tell.
      }
    };
  };
  return {
    debug: level("debug"),
    info: level("info"),
    warn: level("warn"),
    error: level("error"),
  };
}
