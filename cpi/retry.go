// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	cloudprovider "k8s.io/cloud-provider"
	"k8s.io/cloud-provider/api"
)

const (
	// soon is the retry interval while the cloud is working.
	soon = 5 * time.Second
	// later is the retry interval while a user must correct something.
	later = time.Minute
)

// retry returns an error that requests a retry. The service controller emits its text as an event, so it names the
// progress.
func retry(after time.Duration, format string, args ...any) error {
	return api.NewRetryError(fmt.Sprintf(format, args...), wait.Jitter(after, 0.5))
}

// isRetry reports whether an error only requests a retry.
func isRetry(err error) bool {
	var retry *api.RetryError
	return errors.As(err, &retry) || err == cloudprovider.ImplementedElsewhere //nolint:errorlint // never wrapped
}
