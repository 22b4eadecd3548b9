"""The daemon's HTTP server: health, the routes of exporters, and a stream of events.

Usage, with `HttpServer` of `server`::

    exporters = (PrometheusExporter(), JsonExporter(), StatusPage())
    server = HttpServer(health, exporters, host="127.0.0.1", port=9877)
    await server.start()        # raises ListenError if it cannot listen; serves from here on
    log(server.url)             # http://127.0.0.1:9877 (the real port, also after port 0)
    server.publish(report)      # as a Sink: serves this report from now on
    await server.stop()         # within STOP_SECONDS, open requests or not

`health` is the daemon's `Health`. Before the first report all routes answer, with live facts only.

===================  ==================================================================================
``/healthz``         200 while the event loop runs
``/readyz``          200 when state is open and partitions are assigned, else 503; JSON with the reasons
exporters' routes    200; 404 for an unknown model, 400 for an invalid query. Rendered in one thread beside
                     the event loop
the stream's route   server-sent events after each report, rendered once for all listeners
===================  ==================================================================================

Clients are limited (`HttpLimits`) in connections, time for a request, time to read an answer, and bytes of
answers. Health has reserved connections. With a token in `Access`, all routes but health and those marked
public answer 401 without it.
"""
