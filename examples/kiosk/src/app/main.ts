import { createServer } from 'node:http';
import { page, screenOf } from './screen';

const node = process.env.KIOSK_NODE;
const port = Number(process.env.KIOSK_PORT);
if (node === undefined || !Number.isInteger(port) || port <= 0) {
  process.stderr.write('kiosk: needs KIOSK_NODE and KIOSK_PORT\n');
  process.exit(1);
}

const server = createServer((request, response) => {
  if (request.url === '/healthz') return void response.end('ok\n');
  if (request.url === '/screen.json') {
    response.setHeader('content-type', 'application/json');
    return void response.end(JSON.stringify(screenOf(node)));
  }
  response.setHeader('content-type', 'text/html; charset=utf-8');
  response.end(page(screenOf(node)));
});
server.listen(port, '127.0.0.1');
process.on('SIGTERM', () => server.close(() => process.exit(0)));
