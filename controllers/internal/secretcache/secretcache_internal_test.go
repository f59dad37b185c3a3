// SPDX-License-Identifier: Apache-2.0

package secretcache

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// fixture is a Reader of an API server with a Secret.
type fixture struct {
	*WithT

	reader *Reader
	server client.WithWatch
	clock  time.Time
	reads  int    // of the API server
	failed error  // why the metadata cannot be read
	late   string // the version that the metadata still shows, if it is not current
}

var key = client.ObjectKey{Namespace: "default", Name: "credentials"}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{WithT: NewWithT(t), clock: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Data:       map[string][]byte{"password": []byte("first")},
	}
	f.server = fake.NewClientBuilder().WithObjects(secret).Build()
	live := interceptor.NewClient(f.server, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			f.reads++
			return c.Get(ctx, key, obj, opts...)
		},
	})
	metadata := interceptor.NewClient(f.server, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if f.failed != nil {
				return f.failed
			}
			err := c.Get(ctx, key, obj, opts...)
			if f.late != "" {
				obj.SetResourceVersion(f.late)
			}
			return err
		},
	})
	f.reader = New(live, metadata)
	f.reader.now = func() time.Time { return f.clock }
	return f
}

// password reads the Secret, and returns the number of reads of the API server so far.
func (f *fixture) password(t *testing.T) (password string, reads int) {
	t.Helper()
	secret := &corev1.Secret{}
	f.Expect(f.reader.Get(t.Context(), key, secret)).To(Succeed())
	return string(secret.Data["password"]), f.reads
}

func (f *fixture) change(t *testing.T, password string) {
	t.Helper()
	secret := &corev1.Secret{}
	f.Expect(f.server.Get(t.Context(), key, secret)).To(Succeed())
	secret.Data["password"] = []byte(password)
	f.Expect(f.server.Update(t.Context(), secret)).To(Succeed())
}

func TestASecretIsReadAgainAfterAChange(t *testing.T) {
	f := newFixture(t)
	for range 3 {
		password, reads := f.password(t)
		f.Expect(password).To(Equal("first"))
		f.Expect(reads).To(Equal(1))
	}
	f.change(t, "second")
	for range 3 {
		password, reads := f.password(t)
		f.Expect(password).To(Equal("second"))
		f.Expect(reads).To(Equal(2))
	}
}

func TestASecretIsReadWithoutMetadata(t *testing.T) {
	f := newFixture(t)
	f.failed = errors.New("namespace default is not cached")
	for i := range 3 {
		_, reads := f.password(t)
		f.Expect(reads).To(Equal(i + 1))
	}
}

func TestADeletedSecretIsNotFound(t *testing.T) {
	f := newFixture(t)
	f.password(t)
	f.Expect(f.server.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}})).To(Succeed())
	f.Expect(f.reader.Get(t.Context(), key, &corev1.Secret{})).To(Satisfy(apierrors.IsNotFound))
}

func TestAnOwnWriteIsReadBeforeTheMetadataShowsIt(t *testing.T) {
	f := newFixture(t)
	writing := f.reader.Writing(f.server)
	secret := &corev1.Secret{}
	for i, write := range []func() error{
		func() error { return writing.Update(t.Context(), secret) },
		func() error {
			before := secret.DeepCopy()
			secret.Data["password"] = []byte("patched")
			return writing.Patch(t.Context(), secret, client.MergeFrom(before))
		},
	} {
		f.Expect(f.reader.Get(t.Context(), key, secret)).To(Succeed())
		f.late = secret.ResourceVersion
		secret.Data["password"] = fmt.Appendf(nil, "change %d", i)
		f.Expect(write()).To(Succeed())
		password, _ := f.password(t)
		f.Expect(password).To(Equal(string(secret.Data["password"])))
		f.late = ""
	}
	f.Expect(f.reader.Get(t.Context(), key, secret)).To(Succeed())
	f.late = secret.ResourceVersion
	f.Expect(writing.Delete(t.Context(), secret)).To(Succeed())
	f.Expect(f.reader.Get(t.Context(), key, secret)).To(Satisfy(apierrors.IsNotFound))
}

func TestAConflictIsReadBeforeTheMetadataShowsIt(t *testing.T) {
	f := newFixture(t)
	writing := f.reader.Writing(f.server)
	secret := &corev1.Secret{}
	f.Expect(f.reader.Get(t.Context(), key, secret)).To(Succeed())
	f.late = secret.ResourceVersion
	f.change(t, "of another client")
	f.Expect(writing.Update(t.Context(), secret)).To(Satisfy(apierrors.IsConflict))
	password, _ := f.password(t)
	f.Expect(password).To(Equal("of another client"))
}

func TestCallersMayChangeASecret(t *testing.T) {
	f := newFixture(t)
	secret := &corev1.Secret{}
	for range 2 { // from the API server, then from memory
		f.Expect(f.reader.Get(t.Context(), key, secret)).To(Succeed())
		secret.Data["password"][0] = 'x'
	}
	password, reads := f.password(t)
	f.Expect(password).To(Equal("first"))
	f.Expect(reads).To(Equal(1))
}

func TestUnusedSecretsAreDropped(t *testing.T) {
	f := newFixture(t)
	other := client.ObjectKey{Namespace: "default", Name: "other"}
	f.Expect(f.server.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: other.Namespace, Name: other.Name}})).To(Succeed())
	f.password(t)
	f.clock = f.clock.Add(keepFor + time.Second)
	f.Expect(f.reader.Get(t.Context(), other, &corev1.Secret{})).To(Succeed())
	f.Expect(f.reader.held).To(And(HaveLen(1), HaveKey(other)))
}

func TestOtherKindsAreAlwaysRead(t *testing.T) {
	f := newFixture(t)
	f.Expect(f.server.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}})).To(Succeed())
	for range 3 {
		f.Expect(f.reader.Get(t.Context(), key, &corev1.ConfigMap{})).To(Succeed())
	}
	f.Expect(f.reads).To(Equal(3))
}
