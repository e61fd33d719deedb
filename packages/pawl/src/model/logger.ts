import { ValidationError } from "./errors.js";

/**
 * Receives the engine's log. `event` is one of the fixed words that docs/operating.md explains, such as `step.failed`;
 * `fields` has the details. `console` fits.
 */
export interface Logger {
  debug(event: string, fields?: Record<string, unknown>): void;
  info(event: string, fields?: Record<string, unknown>): void;
  warn(event: string, fields?: Record<string, unknown>): void;
  error(event: string, fields?: Record<string, unknown>): void;
}

type Level = keyof Logger;

/**
 * Returns a logger that never throws, because no work may fail for the sake of its log. Without a given logger it logs
 * nothing. Throws `ValidationError` if the given one lacks a function.
 */
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
        // A logger that fails cannot log its own failure.
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
