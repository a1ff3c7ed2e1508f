"""The conversations that a client sent last, kept so that a longer one costs its new messages only.

A `ConversationState` is found by the newest message it covers, and used for a request only as far as each message is
the very same object. The messages themselves hold nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_
from threading import Lock

from interlingua._plugins.provider import ProjectionTarget
from interlingua._request.media import MessageMedia, find_media, media_in
from interlingua._request.project import Projection
from interlingua._request.rules import Violation, check_message, is_plain, locate_violations
from interlingua.types.messages import THINKING_WAS_REFUSED, Message

_REACH = 64  # how many new messages a conversation may have between two requests
_TARGETS = 4  # how many targets' projections of one conversation are kept
_CONVERSATIONS = 16
_WRITTEN_BYTES = 64 * 1024 * 1024
_IMAGES = 8
_IMAGE_BYTES = 32 * 1024 * 1024


class ConversationState:
    """The work already done for a conversation: its checks, its media and its projections into the last four targets.

    One request has it at a time: use it in a `with`, or call `release`.
    """

    def __init__(
        self,
        messages: Sequence[Message],
        earlier: ConversationState | None = None,
        cache: ConversationCache | None = None,
    ) -> None:
        """Begin with these messages and the media that `earlier` resolved; `cache` keeps this after a request."""
        self.messages = list(messages)  # the messages it covers; the list only grows
        self.media: dict[int, MessageMedia] = {}  # of the messages that hold media, by their index
        self.written_bytes = 0  # about what the written pieces of all projections take
        self.key = 0  # in the cache
        self.logged: set[tuple[str, ...]] = set(earlier.logged) if earlier else set()  # causes of losses (`log_losses`)
        self._known_media = {id(one.message): one for one in list(earlier.media.values())} if earlier else {}
        self._checked = 0
        self._refused: dict[str | None, int] = {}  # provider -> its last answer before which it refused thinking
        self._projections: dict[ProjectionTarget, Projection] = {}
        self._sizes: dict[ProjectionTarget, int] = {}
        self._cache = cache
        self._lock = Lock()
        self._lock.acquire()
        self.release = self._lock.release  # lets others use this

    def check(self) -> list[Violation]:
        """Check the messages that were not checked before, find their media, and return what stops a request."""
        found: list[Violation] = []
        for at in range(self._checked, len(self.messages)):
            if THINKING_WAS_REFUSED in (metadata := self.messages[at].metadata).extra:
                self._refused[metadata.provider] = at
        special = [at for at in range(self._checked, len(self.messages)) if not is_plain(self.messages[at])]
        for index in special:
            violations = locate_violations(check_message(self.messages[index]), index)
            found += [one for one in violations if not one.repairable]
        if found:
            del self.messages[self._checked :]
            return found
        for index in special:
            message = self.messages[index]
            known = self._known_media.get(id(message)) or (self._cache and self._cache.known_images(message))
            if media := known or find_media(message):
                self.media[index] = media
        self._checked = len(self.messages)
        return found

    def project(self, target: ProjectionTarget, messages: Sequence[Message]) -> Projection:
        """Project the messages of this conversation, with their media resolved, into a target."""
        projection, refused = self._projections.pop(target, None), self._refused.get(target.provider, 0)
        if projection is None or projection.refused != refused or not projection.covers(messages):
            projection = Projection(target, projection, refused)
        projection.extend(messages[len(projection.sources) :])
        self._projections[target] = projection
        while len(self._projections) > _TARGETS:
            del self._projections[next(iter(self._projections))]
        return projection

    def note_written(self, target: ProjectionTarget, size: int) -> None:
        """Note how many bytes the request for a target has: about what its written pieces take."""
        self._sizes[target] = size
        self.written_bytes = sum(self._sizes.get(one, 0) for one in self._projections)

    def __enter__(self) -> ConversationState:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Let other requests use this; unless one failed, the cache keeps it."""
        if kind is None and self.messages and self._cache is not None:
            self._cache.keep(self)
        self.release()


class ConversationCache:
    """The last conversations that one client sent, each found by its newest message; safe for several threads.

    It keeps at most 16 conversations with 64 MB of written pieces; those that were not used for longest go first.
    Images that were fetched by URL are kept beside them, 8 of at most 32 MB together, each with the very message that
    refers to it: a conversation that is cut to an earlier message sends the same bytes without fetching them again.
    """

    def __init__(self, size: int = _CONVERSATIONS, max_bytes: int = _WRITTEN_BYTES) -> None:
        self._size, self._max_bytes = size, max_bytes
        self._found: dict[int, ConversationState] = {}  # an entry holds its messages, so no other object has their ids
        self._images: dict[int, tuple[MessageMedia, int, int]] = {}  # by message id; with images and bytes
        self._lock = Lock()

    def claim(self, messages: Sequence[Message]) -> ConversationState:
        """Return the conversation of these messages, which no other request gets before `release` or its `with` ends.

        Nothing waits: if another request has the conversation, all but resolved media is computed again. An edited,
        forked or shortened conversation gets its own state, which begins with what was written of the same messages.
        """
        get = self._found.get
        for message in messages[: -_REACH - 1 : -1]:
            found = get(id(message))
            if found is None:
                continue
            if not found._lock.acquire(blocking=False):
                return ConversationState(messages, found, self)
            known = found.messages
            if len(known) <= len(messages) and all(map(is_, known, messages)):
                known += messages[len(known) :]
                return found
            made = ConversationState(messages, found, self)
            made._projections = {target: Projection(target, one) for target, one in found._projections.items()}
            made._sizes = dict(found._sizes)
            found.release()
            return made
        return ConversationState(messages, None, self)

    def keep(self, conversation: ConversationState) -> None:
        """Remember a conversation by its newest message, and drop the oldest ones beyond the bounds."""
        key = id(conversation.messages[-1])
        with self._lock:
            found = self._found
            if found.get(conversation.key) is conversation:
                del found[conversation.key]
            found.pop(key, None)
            conversation.key = key
            found[key] = conversation
            total = sum([one.written_bytes for one in found.values()])
            while found and (len(found) > self._size or total > self._max_bytes):
                total -= found.pop(next(iter(found))).written_bytes
            if conversation.media:
                self._keep_images(conversation)

    def known_images(self, message: Message) -> MessageMedia | None:
        """Return the media of this very message, if its images were fetched and are still kept."""
        kept = self._images.get(id(message))
        return None if kept is None else kept[0]

    def clear(self) -> None:
        """Drop everything."""
        with self._lock:
            self._found.clear()
            self._images.clear()

    def _keep_images(self, conversation: ConversationState) -> None:
        for media in conversation.media.values():
            sent = media.resolved.get(True)
            count = sum(kind == "url" for kind, _ in media.references)
            if sent is not None and count and id(media.message) not in self._images:
                size = sum(len(one.source.data) for _, _, one in media_in(sent))
                self._images[id(media.message)] = (media, count, size)
        images = sum([count for _, count, _ in self._images.values()])
        size = sum([size for _, _, size in self._images.values()])
        while images > _IMAGES or size > _IMAGE_BYTES:
            _, fewer, smaller = self._images.pop(next(iter(self._images)))
            images, size = images - fewer, size - smaller
