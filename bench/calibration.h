/* calibration.h - what machine the figures are from, so that ratios can be judged elsewhere. */
#pragma once

#include "bench.h"

/* Fills report.calibration and prints it: accelerator, kernel, processors, load, adapter, and
 * how many times slower an integer loop and gzip run in the guest than here. */
int calibrate(struct bench *bench);
