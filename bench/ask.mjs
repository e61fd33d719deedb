// @ts-check

/**
 * Sends one request to a server of this machine. With a body, or null for none, it is a POST.
 * @param {string} url
 * @param {unknown} [body]
 * @returns {Promise<any>}
 */
export function ask(url, body) {
  const post = { method: "POST", headers: { "content-type": "application/json" } };
  return answer(
    url,
    body === undefined
      ? {}
      : body === null
        ? { method: "POST" }
        : { ...post, body: JSON.stringify(body) },
  );
}

/**
 * Asks workerd the same for seconds. workerd closes a connection after that, under the request that comes next.
 * @param {string} url
 * @param {unknown} body
 */
export const askLong = (url, body) =>
  answer(url, { method: "POST", headers: { connection: "close" }, body: JSON.stringify(body) });

/**
 * @param {string} url
 * @param {RequestInit} request
 * @returns {Promise<any>}
 */
async function answer(url, request) {
  const response = await fetch(url, request);
  const text = await response.text();
  if (!response.ok) throw new Error(`${url}: ${response.status} ${text}`);
  return text === "" ? null : JSON.parse(text);
}
