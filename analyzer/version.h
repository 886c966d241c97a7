/* version.h - the version that --version prints. */
#ifndef ANALYZER_VERSION_H
#define ANALYZER_VERSION_H

#define ANALYZER_VERSION "0.1.0"

#endif
