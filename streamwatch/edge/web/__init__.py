"""The daemon's HTTP face: health, whatever exporters are plugged in, and a stream of events.

Usage, with `HttpServer` of `server`::

    exporters = (PrometheusExporter(), JsonExporter(), StatusPage())
    server = HttpServer(health, exporters, host="127.0.0.1", port=9877)
    await server.start()        # ListenError when the address cannot be had; serves from here on
    log(server.url)             # http://127.0.0.1:9877 (the real port, also after port 0)
    server.publish(report)      # a Sink: from now on this report is shown
    await server.stop()         # within STOP_SECONDS, open requests or not

`health` is the daemon seen through `Health`. Before the first report everything answers, with the live facts
alone.

===================  ==================================================================================
``/healthz``         200 as long as the event loop turns
``/readyz``          200 when state is open and partitions are assigned, else 503; JSON with the reasons
exporters' routes    200; 404 for an unknown model, 400 for a query that is none. Rendered in one thread,
                     off the event loop
the stream's route   server-sent events after each report, rendered once for all listeners
===================  ==================================================================================

What clients may take is bounded (`HttpLimits`): connections, time to ask, time to read, bytes under way.
Health is answered in slots of its own. With a token in `Access`, everything but health and the exporters
that call themselves public answers 401 without it.
"""
