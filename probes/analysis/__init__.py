"""Figures and tests over readings: rates, differences, ratios, their intervals and corrections."""
