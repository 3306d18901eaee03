// The way out of a code box for Node, which of itself knows of no proxy: connections of `fetch`, `http` and `https` go through
// the session's, as `HTTP_PROXY` and `NO_PROXY` say. Loaded by the Node runner and by Playwright's driver for Python, so it
// holds for Playwright's own requests as well. Agents that connect in a way of their own are left alone.
'use strict';

const http = require('node:http');
const https = require('node:https');
const net = require('node:net');
const tls = require('node:tls');

const { HTTP_PROXY, NO_PROXY = '' } = process.env;
const proxy = HTTP_PROXY && new URL(HTTP_PROXY);
const near = new Set([...NO_PROXY.split(','), '::1', '[::1]']);
const isNear = (options) => !proxy || options.socketPath || near.has(options.host ?? options.hostname ?? 'localhost');

const direct = http.Agent.prototype.createConnection;
const directSecure = https.Agent.prototype.createConnection;
const { request } = http;
const toProxy = new http.Agent();
toProxy.createConnection = direct;

/// Has the proxy connect to a host; its socket goes to `callback`.
function tunnel(host, port, callback) {
  const path = `${net.isIPv6(host) ? `[${host}]` : host}:${port}`;
  const asked = request({ agent: toProxy, host: proxy.hostname, port: proxy.port, method: 'CONNECT', path, headers: { host: path } });
  asked.once('connect', ({ statusCode }, socket) => {
    if (statusCode === 200) return callback(null, socket);
    socket.destroy();
    callback(new Error(`${path} cannot be reached: the session's proxy answered ${statusCode}`));
  });
  asked.once('response', (answer) => {
    answer.resume();
    callback(new Error(`${path} cannot be reached: the session's proxy answered ${answer.statusCode}`));
  });
  asked.once('error', callback);
  asked.end();
}

http.Agent.prototype.createConnection = function createConnection(options, callback) {
  if (typeof options !== 'object' || isNear(options)) return direct.apply(this, arguments);
  tunnel(options.host, options.port || 80, callback);
};

https.Agent.prototype.createConnection = function createConnection(options, callback) {
  if (typeof options !== 'object' || isNear(options)) return directSecure.apply(this, arguments);
  tunnel(options.host, options.port || 443, (error, socket) => (error ? callback(error) : callback(null, tls.connect({ ...options, socket }))));
};

/// Connects for `fetch`.
function connector({ hostname, port, protocol, servername }, callback) {
  const isSecure = protocol === 'https:';
  const host = hostname.replace(/^\[|\]$/g, '');
  const options = { host, port: port || (isSecure ? 443 : 80), servername: servername || (net.isIP(host) ? undefined : host), ALPNProtocols: ['http/1.1'] };
  const watched = (socket, event) => {
    const done = (error) => {
      socket.off(event, done).off('error', done);
      callback(error ?? null, error ? null : socket);
    };
    socket.once(event, done).once('error', done);
  };
  if (isNear(options)) return isSecure ? watched(tls.connect(options), 'secureConnect') : watched(net.connect(options), 'connect');
  tunnel(host, options.port, (error, socket) => {
    if (error) callback(error, null);
    else if (isSecure) watched(tls.connect({ ...options, socket }), 'secureConnect');
    else callback(null, socket);
  });
}

// What `fetch` connects with is there once it is loaded, which waits for its first use.
const DISPATCHER = Symbol.for('undici.globalDispatcher.1');
const { fetch } = globalThis;
let isRouted = !proxy;
globalThis.fetch = function (...args) {
  if (!isRouted) {
    isRouted = true;
    void globalThis.Headers;
    const { constructor } = globalThis[DISPATCHER] ?? {};
    if (constructor?.name === 'Agent') globalThis[DISPATCHER] = new constructor({ connect: connector });
  }
  return fetch.apply(this, args);
};
Object.defineProperty(globalThis.fetch, 'name', { value: 'fetch' });
