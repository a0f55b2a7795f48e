"""The reference phone agent: what an app with a beautify SDK offers to an audit, runnable without a
phone. ``samples/phone_agent/agent.py`` starts it, ``service.fake_servers.phone`` wraps it.
"""
