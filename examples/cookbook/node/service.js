// A service that keeps one socket to the broker open, and opens another when that one ends.
const http = require("node:http");
const { WebSocket } = require("ws");

exports.listen = (url) => {
  let socket;
  const waiting = new Map(); // the answers to HTTP requests, by the context of their messages

  function open() {
    socket = new WebSocket(url);
    socket.on("open", () => waiting.forEach(({ line }) => socket.send(line)));
    socket.on("message", (data) => {
      const { context, messageId, result } = JSON.parse(data);
      const status = result === "ok" ? 201 : 503;
      waiting.get(context)?.answer.writeHead(status).end(messageId);
      waiting.delete(context);
    });
    socket.on("error", () => {}); // "close" follows
    socket.on("close", () => server.listening && setTimeout(open, 100));
  }

  let number = 0;
  const server = http.createServer(async (request, answer) => {
    const body = Buffer.concat(await request.toArray());
    const context = String(number++);
    const line = JSON.stringify({ payload: body.toString("base64"), context });
    waiting.set(context, { line, answer });
    if (socket.readyState === WebSocket.OPEN) socket.send(line); // else "open" sends it
  });
  server.on("close", () => socket.close());
  return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(server, open())));
};
